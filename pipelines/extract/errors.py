"""Errors of calls to nodes and price sources.

    ExtractError
    ├── NodeUnreachable      no connection, a time-out, an answer cut off, HTTP 5xx
    ├── RateLimited          asked too often, still so after waiting
    ├── RangeRefused         the provider wants a narrower block range
    ├── MalformedAnswer      the answer does not fit the request, or has the wrong form
    ├── CallRefused          any other refusal
    ├── StateUnavailable     the state or history at that block is pruned or unknown to the node
    ├── WrongChain           the node serves another chain than the configured one
    ├── ChainReorganised     the chain moved while it was being read
    ├── FalseBlockTime       a block is dated before an earlier one, or after now
    ├── NotProvable          a block's rows cannot be recomputed to its hash
    ├── BudgetSpent          the network used up its budget of the cycle
    └── PriceSourceError     a price source gave no usable answer
        ├── SourceUnreachable    no connection, a time-out, an answer cut off, HTTP 5xx, maintenance
        ├── SourceRateLimited    asked too often, still so after waiting
        ├── SourceMalformed      an answer that is not of its form
        ├── SourceRefused        the source refuses us or the request; waiting does not help
            └── MarketUnknown    it has no such market (any more)

Every error names its network or price source, its call and its block range, and never holds a URL: URLs carry keys.
"""

from typing import Literal, TypeAlias


class ExtractError(Exception):
    """A call to a source that gave no usable answer.

    Attributes:
        network: name of the network, as in networks.toml; of a price source, its id.
        call: name of the method or of the request that failed.
        from_block, to_block: blocks of the request, both included; None where the call names none.
        detail: what happened, in our own words, because tenants read it: neither host nor words of the provider.
        words: the provider's words, cut and without keys; for the log alone.
        is_divisible: whether a part of the request may work.
    """

    words = ""
    is_divisible = True

    def __init__(
        self, network: str, call: str, from_block: int | None = None, to_block: int | None = None, detail: str = ""
    ) -> None:
        super().__init__(network, call, from_block, to_block, detail)
        self.network = network
        self.call = call
        self.from_block = from_block
        self.to_block = to_block
        self.detail = detail

    def __str__(self) -> str:
        return self.told_of(self.from_block, self.to_block)

    def for_the_log(self) -> str:
        """Return the error, with the provider's words if there are any."""
        return f"{self}; the provider's words: {self.words}" if self.words else str(self)

    def told_of(self, from_block: int | None, to_block: int | None) -> str:
        """Return the text of the error for a tenant who requested only these of its blocks; None: name no block."""
        if from_block is None:
            blocks = ""
        elif to_block is None or from_block == to_block:
            blocks = f" of block {from_block}"
        else:
            blocks = f" of blocks {from_block} to {to_block}"
        return f"{self.network}: {self.call}{blocks}: {self.detail}"


class NodeUnreachable(ExtractError):
    """No connection, a time-out, an answer cut off, or HTTP 5xx; `timed_out` marks a time-out."""

    def __init__(
        self,
        network: str,
        call: str,
        from_block: int | None = None,
        to_block: int | None = None,
        detail: str = "",
        *,
        timed_out: bool = False,
    ) -> None:
        super().__init__(network, call, from_block, to_block, detail)
        self.timed_out = timed_out


class RateLimited(ExtractError):
    """The provider wants fewer calls; `retry_after` is the number of seconds that it named, if any."""

    def __init__(
        self,
        network: str,
        call: str,
        from_block: int | None = None,
        to_block: int | None = None,
        detail: str = "",
        *,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(network, call, from_block, to_block, detail)
        self.retry_after = retry_after


class RangeRefused(ExtractError):
    """The provider wants a narrower range; `suggested` is its proposal, if any, and must not be trusted."""

    def __init__(
        self,
        network: str,
        call: str,
        from_block: int | None = None,
        to_block: int | None = None,
        detail: str = "",
        *,
        suggested: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(network, call, from_block, to_block, detail)
        self.suggested = suggested


class MalformedAnswer(ExtractError):
    """The answer does not fit the request, or has the wrong form."""


class CallRefused(ExtractError):
    """A permanent refusal: waiting does not help. `code` and `message` are the provider's."""

    def __init__(
        self,
        network: str,
        call: str,
        from_block: int | None = None,
        to_block: int | None = None,
        detail: str = "",
        *,
        code: int | None = None,
        message: str = "",
    ) -> None:
        super().__init__(network, call, from_block, to_block, detail)
        self.code = code
        self.message = message


class StateUnavailable(ExtractError):
    """The state or history at that block is pruned, or the node does not know the block."""


class WrongChain(ExtractError):
    """The node serves another chain than the configured one."""


class ChainReorganised(ExtractError):
    """The chain changed while it was being read; `block_number` is the block at which this was noticed."""

    def __init__(
        self,
        network: str,
        call: str,
        from_block: int | None = None,
        to_block: int | None = None,
        detail: str = "",
        *,
        block_number: int,
    ) -> None:
        super().__init__(network, call, from_block, to_block, detail)
        self.block_number = block_number


class FalseBlockTime(ExtractError):
    """A block is dated before an earlier one, or ahead of this machine's clock: one of the clocks is wrong."""


ProofFailure: TypeAlias = Literal["hash", "root", "missing", "form", "kind"]
"""Why a block's rows are not proven.

`hash`: the header recomputes to another hash than the stored one. `root`: the receipts recompute to another root than
the header's. `missing`: the node has no header or no receipts. `form`: they have fields or sizes that are not
supported. `kind`: rows of this kind can never be recomputed.
"""


class NotProvable(ExtractError):
    """The rows of a block cannot be recomputed to its hash: they are neither proven nor refuted."""

    def __init__(
        self,
        network: str,
        call: str,
        from_block: int | None = None,
        to_block: int | None = None,
        detail: str = "",
        *,
        reason: ProofFailure,
    ) -> None:
        super().__init__(network, call, from_block, to_block, detail)
        self.reason = reason


class BudgetSpent(ExtractError):
    """The network used up a budget of the cycle; the detail names the budget and its setting."""


PASSING = (NodeUnreachable, RateLimited)
"""Failures that waiting may end: a unit is at fault if it fails so in two cycles."""

OF_ONE_UNIT = (*PASSING, RangeRefused, MalformedAnswer, CallRefused, StateUnavailable)
"""Failures that one contract, wallet, block or transaction may cause alone, while the node answers for all others."""


class PriceSourceError(ExtractError):
    """A price source gave no usable answer to a call.

    Attributes:
        retry_after: number of seconds that the source named, if any.
        timed_out: marks a time-out.
    """

    def __init__(
        self,
        source_id: str,
        call: str,
        detail: str,
        *,
        retry_after: float | None = None,
        timed_out: bool = False,
        words: str = "",
    ) -> None:
        super().__init__(source_id, call, detail=detail)
        self.retry_after = retry_after
        self.timed_out = timed_out
        self.words = words


class SourceUnreachable(PriceSourceError):
    """No connection, a time-out, an answer that is cut off or not JSON, HTTP 5xx, or maintenance."""


class SourceRateLimited(PriceSourceError):
    """The source wants fewer calls."""


class SourceMalformed(PriceSourceError):
    """The answer does not have the expected form."""


class SourceRefused(PriceSourceError):
    """The source refuses us or the request, or its definition does not fit it."""


class MarketUnknown(SourceRefused):
    """The source has no such market (any more)."""
