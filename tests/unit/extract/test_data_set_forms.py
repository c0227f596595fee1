"""Forms of files: a definition and the code that reads the files know the same forms, kinds of files and columns."""

import pytest

from control.networks.families import codec_for
from pipelines.extract.data_sets import ColumnKind, FileForm
from pipelines.extract.families import FAMILIES
from pipelines.raw.database import form_sql
from pipelines.tables.families import ROW_TABLES

FORMS = [
    (family, name, form) for family, described in FAMILIES.items() for name, form in described.data_set_forms.items()
]
IDS = [f"{family} {name}" for family, name, _ in FORMS]
form_cases = pytest.mark.parametrize(("family", "name", "form"), FORMS, ids=IDS)


@pytest.mark.parametrize("family", FAMILIES)
def test_definitions_know_the_forms_that_are_read(family: str) -> None:
    assert list(codec_for(family).data_set_forms) == list(FAMILIES[family].data_set_forms)


@form_cases
def test_definitions_know_the_kinds_of_files(family: str, name: str, form: FileForm) -> None:
    tables = [table.name for table in form.rows.values()]
    tables += [table.name for table in (form.blocks, form.coverage) if table is not None]
    assert codec_for(family).data_set_forms[name].tables == tuple(tables)


def test_definitions_name_each_column_of_the_form_columns() -> None:
    (table,) = FAMILIES["evm"].data_set_forms["columns"].rows.values()
    read = {column.names[0] if column.names else name for name, column in table.columns.items()}
    named = codec_for("evm").data_set_forms["columns"].columns
    assert set(named) == read
    assert len(named) == len(read) == 10
    others = [shape.columns for name, shape in codec_for("evm").data_set_forms.items() if name != "columns"]
    assert set(others) == {()}


@form_cases
def test_rows_of_a_form_have_all_columns_of_their_raw_table(family: str, name: str, form: FileForm) -> None:
    for table, files in form.rows.items():
        wanted = {*ROW_TABLES[table].row_schema, "block_time"}
        assert set(form.checks) >= {table}
        if files.query is None:
            assert wanted <= set(files.columns), table
        else:
            assert form_sql(family, files.query)


@form_cases
def test_hash_and_time_come_from_the_rows_or_from_files_of_blocks(family: str, name: str, form: FileForm) -> None:
    given = {"block_hash", "block_time"}
    if form.blocks is not None:
        assert given <= set(form.blocks.columns)
        return
    for files in form.rows.values():
        assert all(files.columns[column].kind is not ColumnKind.ABSENT for column in given)
