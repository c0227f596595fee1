-- Databases that PostgreSQL makes at its first start.
create database ledgermart;
create database dagster;
create database lake;
