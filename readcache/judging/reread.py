"""A file's lines asked for once more, with the same answer: what `judge` and `compose` come to, at a tenth of the cost.

The commonest omission, and the one whose cost shows: a read tool's re-read is answered in the time that reading the
file takes. Whatever is not plain here is left to the rules.
"""

from __future__ import annotations

from readcache.judging import marker
from readcache.judging.compose import GAIN
from readcache.judging.judge import Call, Usable, insists
from readcache.model.claims import path_of
from readcache.model.events import Delivered, Pointer
from readcache.model.view import Delivery, View
from readcache.policy import Insist, Mode, Policy
from readcache.reply import Omitted, Outcome, Reason, Reply


def answer_again(
    view: View, call: Call, policy: Policy, *, session_tag: str, exit_code: int
) -> tuple[Reply, Delivered] | None:
    """The reply and its event when `call` is answered by one marker for the newest answer to the same request; None:
    go by the rules."""
    same = view.answer_to(call.request)
    if same is None or not _still_stands(view, call, same) or not _lets(view, call, policy, same):
        return None
    number, piece = view.number_of(call.call_id), same.event.pieces[0]
    path, start, end = path_of(piece.keys[0]), piece.first, piece.first + piece.count - 1
    source = marker.Source(same.event.label, max(1, number - same.call))
    what = marker.name_lines(path, [(start, end)])
    line = marker.write_marker(session_tag, what, [source], paths=[path], whole_read=True)
    if len(call.output) < GAIN * len(line):
        return None
    text, sources = line + "\n", (same.event.call_id,)
    tokens = policy.count_tokens(text)
    saved = policy.count_tokens(call.output) - tokens
    event = Delivered(
        call_id=call.call_id,
        text=text,
        label=call.command,
        request=call.request,
        pointers=(Pointer(0, path, start, end, sources, piece.sep is not None, line),),
        outcome=Outcome.UNCHANGED,
        reason=Reason.COVERED,
        output_chars=len(call.output),
        tokens_saved=saved,
        call=number,
        tokens_so_far=view.tokens + tokens,
        batch=call.batch,
    )
    omitted = Omitted(path, start, end, sources)
    reply = Reply(
        text, exit_code, Outcome.UNCHANGED, Reason.COVERED, (omitted,), call.call_id, saved, full_text=call.output
    )
    return reply, event


def _still_stands(view: View, call: Call, same: Delivery) -> bool:
    """Is the answer of then of the file as it is, as far as is known, and this very text?"""
    return not view.key(same.event.pieces[0].keys[0]).is_stale(same) and same.event.text == call.output


def _lets(view: View, call: Call, policy: Policy, same: Delivery) -> bool:
    """Does nothing that the rules look at forbid to leave it out?"""
    if policy.mode is not Mode.ON or policy.protected or policy.forbids(call.command):
        return False
    if call.trouble is not None or call.fresh or len(call.output) < policy.min_chars:
        return False
    if policy.insist is Insist.SERVE and insists(view, call):
        return False
    return Usable(view, call, policy).delivery(same)
