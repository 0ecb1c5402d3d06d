"""A page as a parser of HTML sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

from readcache.core.model.events import Record
from readcache.report.page.page import session_page

VOID = ("meta", "link", "input", "br", "hr", "img")
DRAWN = ("path",)  # closed in its own tag


@dataclass
class Node:
    """An element."""

    tag: str
    attributes: dict[str, str | None]
    parent: Node | None = None
    children: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text in it."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    @property
    def classes(self) -> list[str]:
        """Its classes."""
        return (self.attributes.get("class") or "").split()

    def all(self, tag: str = "", class_: str = "") -> list[Node]:
        """The elements in it, in order."""
        out = []
        for child in self.children:
            if isinstance(child, Node):
                if (not tag or child.tag == tag) and (not class_ or class_ in child.classes):
                    out.append(child)
                out += child.all(tag, class_)
        return out


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.at = self.root = Node("", {})

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), "an attribute twice"
        node = Node(tag, dict(attrs), self.at)
        self.at.children.append(node)
        if tag not in VOID:
            self.at = node

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in DRAWN
        self.at.children.append(Node(tag, dict(attrs), self.at))

    def handle_endtag(self, tag: str) -> None:
        assert self.at.tag == tag, f"</{tag}> closes <{self.at.tag}>"
        assert self.at.parent is not None
        self.at = self.at.parent

    def handle_data(self, data: str) -> None:
        self.at.children.append(data)


def parse(page: str) -> Node:
    """The page's elements. AssertionError where one is not closed in order."""
    builder = _Builder()
    builder.feed(page)
    builder.close()
    assert builder.at is builder.root
    return builder.root


def page_of(records: list[Record], title: str = "A session") -> str:
    """The whole page."""
    return "".join(session_page(records, title, {"store": "a store"}))


def assert_sound(page: Node) -> None:
    """Every id is unique, and every link leads somewhere."""
    ids = [node.attributes["id"] for node in page.all() if "id" in node.attributes]
    assert len(set(ids)) == len(ids)
    for link in page.all("a"):
        target = link.attributes["href"] or ""
        assert target[0] == "#"
        assert target[1:] in ids
    for node in page.all():
        assert not {name for name in node.attributes if name.startswith("on") or name in ("src", "srcset", "action")}
        for name in ("data-same", "aria-labelledby", "for"):
            assert name not in node.attributes or node.attributes[name] in ids
        for span in (node.attributes.get("data-from") or "").split():
            assert span.split(":")[0] in ids
