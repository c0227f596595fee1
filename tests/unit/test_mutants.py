"""The mutants of `tests/mutants` still fit the sources."""

import pytest

from tests import CHECKOUT
from tests.mutants.__main__ import Mutant, mutants


@pytest.mark.parametrize("mutant", mutants(), ids=lambda one: one.name)
def test_the_text_of_a_mutant_occurs_once_and_its_test_exists(mutant: Mutant) -> None:
    assert (CHECKOUT / mutant.file).read_text().count(mutant.old) == 1
    file, _, name = mutant.test.partition("::")
    assert f"def {name}" in (CHECKOUT / file).read_text()
