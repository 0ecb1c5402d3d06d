"""What an omission is worth: the tokens that it saves while they would be carried, against one more turn.

The promise decides what may be left out; this decides what is. It never looks at what the lines say.
"""

from __future__ import annotations

from readcache.model.policy import Policy
from readcache.model.view import View


def is_worth(view: View, tokens: int, policy: Policy) -> bool:
    """True if omitting so many tokens, net, saves at least the share of a turn that the policy demands."""
    if not policy.min_worth:
        return True
    share = max(policy.min_worth, view.calls.bounces.rate(policy.min_worth))
    carried = view.carried // policy.prices.chars_per_token  # it need not be known better
    return policy.prices.of_text(tokens) >= share * policy.prices.of_turn(carried)
