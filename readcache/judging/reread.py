"""The same lines of one file asked for again, with the same answer: what `decide` and `compose` come to, in half the
time.

The commonest omission, and the one whose cost is felt: beside it stands only the reading of the file. What is not
plain is left to the rules. tests/judging/test_reread.py holds both against each other.
"""

from __future__ import annotations

from readcache.judging import marker
from readcache.judging.compose import GAIN, count_shown, saved_by
from readcache.judging.cuts import end_of, source_of
from readcache.judging.insistence import insists
from readcache.judging.judge import UNDECODED
from readcache.judging.sources import Sources
from readcache.judging.worth import is_worth
from readcache.model.call import Call
from readcache.model.claims import ANY_SEPARATOR, FileLines, is_blob
from readcache.model.events import Account, Delivered, Moment, Origin, Pointer, Stand
from readcache.model.key_view import Reference
from readcache.model.policy import Insist, Mode, Policy, Rules
from readcache.model.reply import Omitted, Outcome, Reason, Reply
from readcache.model.stored_text import count_lines_of, digest_of
from readcache.model.text import digest
from readcache.model.view import View


def answer_reread(view: View, call: Call, rules: Rules) -> tuple[Reply, Delivered] | None:
    """The reply and its event when one marker answers the call; None: go by the rules."""
    policy = rules.policy
    shown = _shown_last(view, call)
    if shown is None or not _may_omit(view, call, policy) or not Sources(view, call, policy).allow(shown.delivery):
        return None
    number, piece, source = view.calls.number_of(call.call_id), shown.piece, shown.event
    path, start, end = piece.keys[0], piece.first, piece.first + piece.count - 1
    is_file = call.reading.whole_file and (piece.eof or piece.sep is not None)
    word = marker.LEFT_OUT if is_blob(path) else marker.FILE_UNCHANGED if is_file else marker.UNCHANGED
    what = marker.name_lines(path, [(start, end)])
    named = source_of(view, shown.delivery, same_file=True)
    line = marker.write_marker(f"{rules.tag}.{number}", word, what, [named], "", end_of(call))
    if len(call.output) < GAIN * len(line):
        return None
    text, sources, chars = line + "\n", (source.call_id,), count_shown(call.output, policy, len)
    tokens = policy.tokens(text)
    saved = policy.tokens(call.output) - tokens
    if not is_worth(view, saved, policy):
        return None
    saved = saved if policy.clip is None else saved_by(call.output, text, policy)
    stands = Stand(source.call_id, source.origin, 0, piece.count, _digest_of_lines(source, call.output))
    event = Delivered(
        call_id=call.call_id,
        text=text,
        label=call.label,
        pointers=(Pointer(0, path, start, end, sources, piece.sep is not None, line, (stands,)),),
        when=Moment(number, view.calls.tokens + tokens, call.batch, call.started),
        account=Account(call.request, Outcome.UNCHANGED, Reason.COVERED, chars, saved, host=rules.host, tool=call.tool),
    )
    omitted = (Omitted(path, start, end, sources),)
    outcome, reason = Outcome.UNCHANGED, Reason.COVERED
    return Reply(text, call.exit_code or 0, outcome, reason, omitted, call.call_id, saved, call.output), event


def _digest_of_lines(event: Delivered, text: str) -> str:
    """As `text.digest_lines` of all lines of the event's text, which is this."""
    return digest_of(event) if text.endswith("\n") else digest(text + "\n")


def _shown_last(view: View, call: Call) -> Reference | None:
    """The newest showing of the first line asked for, if it is of the file as it is, as far as is known, and the whole
    of its text is the output."""
    claims = call.reading.claims
    claim = claims[0] if len(claims) == 1 else None
    if not isinstance(claim, FileLines) or len(claim.keys) != 1 or claim.gaps or not claim.ranges:
        return None
    shown = view.key(claim.keys[0]).numbered.at(claim.ranges[0][0])
    if shown is None or shown.event.text != call.output or shown.event.origin is not Origin.RESULT:
        return None
    event, piece = shown.event, shown.piece
    is_all = len(event.pieces) == 1 and piece.keys == claim.keys and piece.count == count_lines_of(event)
    is_same = piece.first == claim.ranges[0][0] and piece.shift == claim.shift
    is_same &= piece.sep == claim.sep or (piece.sep is not None and claim.sep == ANY_SEPARATOR)
    return shown if is_all and is_same else None


def _may_omit(view: View, call: Call, policy: Policy) -> bool:
    """True if nothing that the rules look at forbids an omission."""
    if policy.mode is not Mode.ON or policy.protected:
        return False
    if not call.complete or call.exit_code not in (0, None):  # what its lines are is open
        return False
    if call.trouble is not None or call.fresh or UNDECODED in call.output or len(call.output) < policy.min_chars:
        return False
    return policy.insist is not Insist.SERVE or not insists(view, call)
