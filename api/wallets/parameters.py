"""Parameters of wallets."""

from typing import Annotated, Literal

from litestar.params import QueryParameter

WalletSort = Annotated[
    Literal["createdAt", "-createdAt", "name", "-name"],
    QueryParameter(description="Sort order; a leading `-` means descending."),
]
