"""What tenants configured, as the last cycle read it from the control store; replaced whole each cycle."""

from pipelines.tables.common import ADDRESS, NETWORK, OPERATION_KEY, SUBJECT_KEY, TENANT_ID
from pipelines.tables.table import BIGINT, BOOLEAN, TIMESTAMP, VARCHAR, Column, Source, Table, optional

SOURCE = Source(
    "control",
    "What tenants configured, as the last cycle read it from the control store; replaced whole each cycle.",
    tables=(
        Table(
            "control_revisions",
            "Revision of the control store that the cycle saw.",
            "At most one row.",
            Column("revision", BIGINT, "Revision of the control store that the snapshot shows."),
        ),
        Table(
            "control_tenants",
            "Tenants.",
            "One row per tenant.",
            TENANT_ID,
            Column("tenant_name", VARCHAR, "Name of the tenant."),
        ),
        Table(
            "control_ledgers",
            "Ledgers that are not removed.",
            "One row per ledger.",
            Column("ledger_id", VARCHAR, "Public id of the ledger."),
            TENANT_ID,
            NETWORK,
            Column("ledger_name", VARCHAR, "Name of the ledger, unique per tenant."),
            optional("display_name", VARCHAR, "Name for people; may be null."),
        ),
        Table(
            "control_subjects",
            "Tracked tokens and wallets that are not removed.",
            "One row per subject.",
            SUBJECT_KEY,
            Column("subject_id", VARCHAR, "Public id, tok_ or wal_."),
            Column("kind", VARCHAR, "token or wallet."),
            TENANT_ID,
            Column("ledger_id", VARCHAR, "Public id of the ledger."),
            NETWORK,
            ADDRESS,
            optional("symbol", VARCHAR, "Symbol that the tenant gave; null for wallets."),
            optional("name", VARCHAR, "Name that the tenant gave."),
            optional("external_id", VARCHAR, "The tenant's own identifier."),
            optional(
                "pair_key",
                BIGINT,
                "Key of the price pair that a token is linked to; null for wallets and tokens without a link.",
            ),
            Column("created_at", TIMESTAMP, "When it was added, UTC."),
        ),
        Table(
            "control_windows",
            "Tracking windows of these subjects.",
            "One row per window.",
            Column("window_key", BIGINT, "Integer key of the tracking window."),
            SUBJECT_KEY,
            Column("opened_at", TIMESTAMP, "First instant of the window, UTC."),
            optional("closed_at", TIMESTAMP, "First instant after the window, UTC; null while open."),
        ),
        Table(
            "control_history_requests",
            "History requests that tenants asked for, finished or not.",
            "One row per request.",
            OPERATION_KEY,
            SUBJECT_KEY,
            Column("from_text", VARCHAR, "First block or instant, as it was asked for."),
            Column("to_text", VARCHAR, "Last block or instant, as it was asked for."),
            optional(
                "native",
                VARCHAR,
                "Of a wallet, full or balance-only, as resolved or as asked for; null leaves it open.",
            ),
            Column("status", VARCHAR, "Status of the operation in the control store."),
            Column("is_cancelled", BOOLEAN, "Whether the tenant cancelled it."),
            Column("created_at", TIMESTAMP, "When it was asked for, UTC."),
        ),
    ),
)
