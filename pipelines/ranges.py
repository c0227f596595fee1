"""Arithmetic on block ranges, which the API uses too."""

from control.ranges import FIRST_BLOCK as FIRST_BLOCK
from control.ranges import BlockRange as BlockRange
from control.ranges import difference as difference
from control.ranges import intersection as intersection
from control.ranges import merged as merged
