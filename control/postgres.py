"""Time limits of connections to PostgreSQL, which may accept a connection and stay silent."""


def connection_limits(wait_seconds: int, options: str = "") -> dict[str, int | str]:
    """Return parameters of libpq that end a connection to a machine that is gone, and a wait for a lock.

    Args:
        wait_seconds: longest wait for the connection, and for a lock of another session.
        options: further options of the session, which may replace the limits.
    """
    return {
        "connect_timeout": wait_seconds,
        # Together 50 s without a sign of the other machine; the second limit is for unconfirmed bytes.
        "keepalives_idle": 20,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": 50_000,
        "options": f"-c lock_timeout={wait_seconds}s {options}".strip(),
    }
