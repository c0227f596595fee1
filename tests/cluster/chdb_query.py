"""Run the ClickHouse query of standard input in this process, and write its rows as TSV; needs the package chdb."""

import sys

import chdb

sys.stdout.write(str(chdb.query(sys.stdin.read(), "TSV")))
