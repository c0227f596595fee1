"""A tenant's names of addresses, read from configuration for each request."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from control import labels
from control.labels import NO_LABEL, Label
from control.store import ControlStore
from control.subjects import SubjectRow

Labels = Mapping[str, Label]
"""Labels by stored address."""


@dataclass(frozen=True, slots=True)
class Names:
    """Names of addresses on a subject's ledger, as its tenant set them."""

    store: ControlStore
    subject: SubjectRow

    def of(self, addresses: Collection[str]) -> Labels:
        """Return a label for each stored address, by one query; an address without a name has an empty label."""
        wanted = set(addresses)
        with self.store.read() as session:
            known = labels.read(session, self.subject.tenant_id, self.subject.ledger_id, wanted)
        return {address: known.get(address, NO_LABEL) for address in wanted}

    def all(self) -> Labels:
        """Return the labels of all addresses that have one."""
        with self.store.read() as session:
            return labels.read_all(session, self.subject.tenant_id, self.subject.ledger_id)

    def tracked(self, wallet_ids: Collection[str]) -> set[str]:
        """Return the ids of those wallets that are tracked."""
        if not wallet_ids:
            return set()
        with self.store.read() as session:
            return labels.tracked_wallets(session, self.subject.tenant_id, wallet_ids)

    def matching(self, q: str | None) -> tuple[str, ...]:
        """Return the stored addresses with a name that contains a text; none if `q` is None.

        Raises:
            Invalid: `q` is invalid.
        """
        if q is None:
            return ()
        with self.store.read() as session:
            return tuple(labels.addresses_named(session, self.subject.tenant_id, self.subject.ledger_id, q))
