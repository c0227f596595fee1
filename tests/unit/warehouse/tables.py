"""Tables of the lakes in these tests."""

TABLES = {
    "facts": [("block_number", "bigint"), ("amount", "varchar")],
    "coverage": [("writer", "varchar"), ("from_block", "bigint"), ("to_block", "bigint")],
}
