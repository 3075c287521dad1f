"""The page of a comparison: what it says, that it stays bounded and loads nothing, that names are text in it, and what
a browser makes of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import browser
import numpy as np
import pinnace as pn
import pytest
from made_comparison import made_comparison
from pinnace.html.document import part, script_hash
from pinnace.html.graph_picture import BOXES_MOST
from pinnace.html.grouping import TABLE_ROWS, Group, grouped, module_of, table_groups
from pinnace.html.layout import BOX_HEIGHT, BOX_WIDTH, layout
from pinnace.verify.error_details import MAP_COLUMNS, MAP_ROWS, WORST, WorstErrors, error_detail

SIZES = (5, 300, 3000)
HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(2)></svg></style>{{ 7 * 7 }}\u202e\x1b[2J"


class Tags(HTMLParser):
    """Tags and attributes of a page, and the contents of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append(data)

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


def limit(c: pn.Comparison) -> int:
    """What the docstring of to_html() promises."""
    assert c.graph is not None
    parts = max(len(c.graph.nodes), len(c.rows))
    return 256 * 1024 + parts * (3 * 1024 + 250 * (len(c.targets) - 1))


# ---- the page as text -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", SIZES)
def test_a_page_is_one_bounded_file(layers: int) -> None:
    c = made_comparison(layers)
    page = c.to_html()
    assert len(page.encode()) < limit(c) / 2
    tags = Tags(page)
    assert len(tags.all("script")) == 1
    assert not {"link", "iframe", "object", "embed", "base", "form"} & {tag for tag, _ in tags.tags}
    assert all("src" not in attributes for tag, attributes in tags.tags if tag != "img")
    assert all((image["src"] or "").startswith("data:image/png;base64,") for image in tags.all("img"))
    assert all((link["href"] or "").startswith("#") for link in tags.all("a"))
    named = {attributes["id"] for _, attributes in tags.tags if attributes.get("id")}
    assert {(link["href"] or "")[1:] for link in tags.all("a")} <= named, "every link leads somewhere"
    assert len([row for row in tags.all("tr") if "layer" in (row.get("class") or "").split()]) == len(c.rows)
    assert page.count('class="view"') == 1 or layers > BOXES_MOST


def test_the_headline() -> None:
    good = made_comparison(5)
    assert "<h1>Equal within bounds</h1>" in good.to_html()
    assert "All 6 values are within their bounds on cpu, vulkan" in good.to_html()
    bad = made_comparison(5, bad=2).to_html()
    assert "<h1>Values differ</h1>" in bad
    assert "2 of 6 values are outside of their bounds" in bad
    assert "key_2 (key) on vulkan differs by 0.03" in bad
    doubtful = pn.Comparison(good.rows, good.targets, {"metal": "no device"}, "torch", {}, ["y does not move"])
    page = doubtful.to_html()
    assert "which proves nothing of some outputs" in page
    assert "inconclusive: y does not move" in page
    assert "metal was not run: no device" in page


def test_a_comparison_without_graph_or_rows_has_a_page() -> None:
    row = pn.ComparisonRow("y", "", "output", "", True, {"cpu": pn.Agreement(np.inf, np.inf, False, "non-finite")})
    for rows in ([], [row]):
        c = pn.Comparison(rows, ["cpu"], {}, "torch")
        assert "<h1>" in c.to_html()
        assert "pinnace" in c._repr_html_()


def test_names_are_text_in_pages_and_notebooks() -> None:
    c = made_comparison(60, ("cpu",), bad=1, name=lambda plain: f"{HOSTILE}{plain}")
    tags = Tags(c.to_html())
    assert tags.scripts == [part("page.js")], "no script but the page's own"
    policy = next(m["content"] or "" for m in tags.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert f"script-src '{script_hash(part('page.js'))}'" in policy
    assert "default-src 'none'" in policy
    for page in (c.to_html(), c._repr_html_()):
        tags = Tags(page)
        assert not [name for _, attributes in tags.tags for name in attributes if name.startswith("on")]
        assert not [image for image in tags.all("img") if image.get("src") == "x"]
        assert "{{ 7 * 7 }}" in page or "49" not in page
        assert "&lt;script&gt;" in page
        assert "\x1b" not in page
        assert "\u202e" not in page
    assert not Tags(c._repr_html_()).all("script")


def test_long_names_keep_a_page_bounded() -> None:
    c = made_comparison(200, ("cpu", "vulkan", "nnapi"), bad=20, name=lambda plain: plain + "<&" * 50_000)
    assert len(c.to_html().encode()) < limit(c)
    assert len(c._repr_html_().encode()) < 250_000


# ---- groups and layout ----------------------------------------------------------------------------------------------


def node(name: str, source: str = "", module: str = "") -> pn.NodeInfo:
    return pn.NodeInfo(name, "conv", "", source, module, [], [name], [])


def test_nodes_are_grouped_by_module_or_what_stands_for_it() -> None:
    assert module_of(node("conv2d", "/home/u/net.py:41", "layers.3.conv1")) == "layers.3.conv1"
    assert module_of(node("conv2d", "/home/u/net.py:41")) == "net.py.line 41"
    assert module_of(node("/layers.3/conv1/Conv")) == "layers.3.conv1"
    assert module_of(node("conv2d")) == ""


@pytest.mark.parametrize("modules", [True, False])
@pytest.mark.parametrize("layers", [1, 41, 300, 3000])
def test_every_node_is_in_one_group_of_a_bounded_size(layers: int, modules: bool) -> None:
    graph = made_comparison(layers, ("cpu",), modules=modules).graph
    assert graph is not None
    tree = grouped(graph.nodes, BOXES_MOST)
    assert sorted(tree.members()) == list(range(layers))

    def look(group: Group) -> None:
        assert len(group.parts) <= BOXES_MOST
        for part_ in group.parts:
            if isinstance(part_, Group):
                assert len(part_.parts) > 1
                look(part_)

    look(tree)
    groups = table_groups(graph.nodes)
    assert sorted(place for _, places in groups for place in places) == list(range(layers))
    assert all(len(places) <= TABLE_ROWS for _, places in groups)
    assert len(groups) <= max(1, layers // 5)


def test_boxes_do_not_overlap_and_edges_lead_down(rng: np.random.Generator) -> None:
    for _ in range(30):
        count = int(rng.integers(1, 45))
        edges = {(int(a), int(b)) for a, b in rng.integers(0, count, (int(rng.integers(0, 3 * count)), 2))}
        drawn = layout(count, edges)
        assert len(drawn.boxes) == count
        for i, (x, y) in enumerate(drawn.boxes):
            assert -1 <= x <= drawn.width - BOX_WIDTH + 1
            assert 0 <= y <= drawn.height - BOX_HEIGHT + 1
            for ox, oy in drawn.boxes[:i]:
                assert abs(x - ox) >= BOX_WIDTH or abs(y - oy) >= BOX_HEIGHT
        wanted = sorted(edge for edge in edges if edge[0] != edge[1])
        assert len(drawn.edges) == len(wanted)
        for (a, b), points in zip(wanted, drawn.edges, strict=True):
            assert points[0] == (drawn.boxes[a][0] + BOX_WIDTH / 2, drawn.boxes[a][1] + BOX_HEIGHT)
            assert points[-1] == (drawn.boxes[b][0] + BOX_WIDTH / 2, drawn.boxes[b][1])
    assert layout(0, []).boxes == []


# ---- where errors lie -----------------------------------------------------------------------------------------------


def test_errors_are_counted_and_mapped() -> None:
    want = np.ones((2, 3, 100, 200), np.float32)
    got = want.copy()
    got[1, 2, 99, 0] = 1.5
    got[0, 0, 0, 199] = np.nan
    detail = error_detail("y", False, "cpu", got, want)
    assert (detail.equal, sum(detail.counts)) == (want.size - 2, 2)
    assert detail.sizes[0] == "below 1e-10"
    assert len(detail.sizes) == len(detail.counts)
    assert detail.counts[-1] == 1, "not a number counts as infinite"
    assert detail.counts[detail.sizes.index("0.32 to 1")] == 1
    assert detail.axes == (2, 3)
    assert (len(detail.heat_map), len(detail.heat_map[0])) == (MAP_ROWS, MAP_COLUMNS)
    assert detail.heat_map[-1][0] == 0.5
    assert detail.heat_map[0][-1] == np.inf
    assert [index for index, _, _ in detail.worst] == [[0, 0, 0, 199], [1, 2, 99, 0]]


@pytest.mark.parametrize("shape", [(), (1,), (7,), (1, 1), (300,), (3, 1, 1), (2, 5)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_])
def test_errors_of_any_shape_and_type(shape: tuple[int, ...], dtype: Any) -> None:
    want, got = np.zeros(shape, dtype), np.ones(shape, dtype)
    detail = error_detail("y", True, "cpu", got, want)
    assert detail.equal == 0
    assert sum(detail.counts) == want.size
    assert max(max(row) for row in detail.heat_map) == 1
    verdict = pn.Agreement(1, 1, False, "differs")
    c = pn.Comparison([pn.ComparisonRow("y", "", "output", "", True, {"cpu": verdict})], ["cpu"], {}, "a")
    assert "heat map" in pn.Comparison(**{**vars(c), "details": [detail]}).to_html()


def test_only_the_worst_are_kept() -> None:
    worst, zeros = WorstErrors(), np.zeros(4, np.float32)
    for i in range(50):
        worst.look("cpu", f"v{i}", False, pn.Agreement(i, i / 100, True, ""), zeros + i, zeros)
    worst.look("vulkan", "v20", False, pn.Agreement(1, 1e-9, False, "differs"), zeros + 1, zeros)
    worst.look("cpu", "other type", False, pn.Agreement(1, np.inf, False, "is"), zeros, zeros.astype(np.float64))
    kept = worst.details({})
    assert [d.value for d in kept] == ["v20", *(f"v{i}" for i in range(49, 49 - WORST + 1, -1))]
    assert kept[0].target == "vulkan"


# ---- Model Explorer -------------------------------------------------------------------------------------------------


def test_node_data_for_model_explorer(tmp_path: Path) -> None:
    c = made_comparison(5, bad=1)
    told = json.loads(c.to_model_explorer(tmp_path / "data.json"))
    assert json.loads((tmp_path / "data.json").read_text()) == told
    assert set(told) == {"graph"}
    results, thresholds = told["graph"]["results"], told["graph"]["thresholds"]
    assert list(results) == [row.value for row in c.rows if not row.output]
    assert results["key_2"] == {"value": 0.03, "bgColor": "#d9412f", "textColor": "white"}
    assert all(set(item) == {"value", "bgColor"} for item in thresholds)
    assert [item["value"] for item in thresholds] == sorted(item["value"] for item in thresholds)
    only = json.loads(c.to_model_explorer(target="cpu", graph="main"))["main"]["results"]
    assert only["key_2"] == {"value": c.rows[2].targets["cpu"].relative}
    far = pn.ComparisonRow("y", "y", "add", "", False, {"cpu": pn.Agreement(np.inf, np.inf, False, "far")})
    told = json.loads(pn.Comparison([far], ["cpu"], {}, "a").to_model_explorer())
    assert told["graph"]["results"]["y"]["value"] == 1e30
    with pytest.raises(pn.InvalidArgument, match="no target 'metal'"):
        c.to_model_explorer(target="metal")


# ---- in a browser ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Browser]:
    program = browser.find()
    if program is None:
        pytest.skip(browser.MISSING)
    with browser.Browser(program, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def page_of(c: pn.Comparison, folder: Path) -> Path:
    c.to_html(folder / "page.html")
    return folder / "page.html"


def clicked(selector: str) -> str:
    """A script that clicks the link around an element of an SVG, which has no click() of its own."""
    link = f"document.querySelector('{selector}').closest('a')"
    return f"{link}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))"


VISIBLE = "[...document.querySelectorAll('tr.layer')].filter(row => row.offsetHeight > 0)"


@pytest.mark.parametrize("layers", SIZES)
def test_a_browser_shows_the_page_and_asks_for_nothing(layers: int, tab: browser.Browser, tmp_path: Path) -> None:
    tab.messages.clear()
    tab.requests.clear()
    page = page_of(made_comparison(layers, bad=1), tmp_path)
    colors = []
    for dark in (False, True):
        tab.open(page, dark)
        colors.append(tab.run("getComputedStyle(document.body).backgroundColor"))
        tab.picture(tmp_path / "picture.png")
        assert (tmp_path / "picture.png").stat().st_size > 10_000
        boxes = tab.run("[...document.querySelectorAll('.view.current .node')].filter(b => b.getBBox().width).length")
        assert 5 <= boxes <= BOXES_MOST + 2
        assert tab.run("document.querySelectorAll('.view.current').length") == 1
        assert tab.run("[...document.images].every(image => image.naturalWidth > 0)")
    assert colors == ["rgb(255, 255, 255)", "rgb(18, 22, 28)"]
    assert tab.messages == []
    assert {address.partition(":")[0] for address in tab.requests} == {"file", "data"}
    assert {address for address in tab.requests if address.startswith("file")} == {page.as_uri()}


def test_groups_open_and_rows_are_found_and_sorted(tab: browser.Browser, tmp_path: Path) -> None:
    c = made_comparison(300, bad=2)
    tab.open(page_of(c, tmp_path))
    assert tab.run(f"{VISIBLE}.length") == 11, "the group that has rows that differ, and the outputs"
    # A group in the graph, then a node in it, which leads to its row.
    tab.run(clicked(".view.current .group.bad"))
    tab.run("new Promise(done => setTimeout(done, 100))")
    assert tab.run("document.querySelector('.view.current .trail').textContent").endswith("encoder.layer.15")
    tab.run(clicked(".view.current .node.e2, .view.current .node.e1"))
    tab.run("new Promise(done => setTimeout(done, 100))")
    assert tab.run("document.querySelector('tr:target').offsetHeight") > 0
    # Search, in any group.
    search = "document.getElementById('search')"
    tab.run(f"{search}.value = 'GELU layer.7'; {search}.dispatchEvent(new Event('input'))")
    assert tab.run(f"{VISIBLE}.map(row => row.cells[1].textContent)") == ["gelu_79"]
    tab.run(f"{search}.value = ''; {search}.dispatchEvent(new Event('input'))")
    tab.run("document.getElementById('only').click()")
    assert tab.run(f"{VISIBLE}.map(row => row.cells[1].textContent)") == ["norm_150", "query_151"]
    tab.run("document.getElementById('only').click()")
    # Sorted by the last target: the largest first, then the smallest, then by the graph.
    click = "document.querySelector('table.layers thead th:last-child button').click()"
    values = f"{VISIBLE}.map(row => Number(row.cells[7].dataset.v))"
    tab.run(click)
    largest = tab.run(values)
    assert len(largest) == 301
    assert largest == sorted(largest, reverse=True)
    tab.run(click)
    assert tab.run(values) == sorted(largest)
    tab.run(click)
    assert tab.run("[...document.querySelectorAll('tr.layer')].map(row => Number(row.cells[0].dataset.v))") == list(
        range(1, 302)
    )
    # Colors of one target alone.
    red = "document.querySelectorAll('.node.bad').length"
    assert tab.run(red) > 0
    tab.run("document.getElementById('target').selectedIndex = 1")
    tab.run("document.getElementById('target').dispatchEvent(new Event('change'))")
    assert tab.run(red) == 0


def test_hostile_names_run_nothing_in_a_browser(tab: browser.Browser, tmp_path: Path) -> None:
    tab.messages.clear()
    c = made_comparison(60, bad=1, name=lambda plain: f"{HOSTILE}{plain}")
    notebook = "".join(["<meta charset=utf-8>", c._repr_html_()])
    (tmp_path / "notebook.html").write_text(notebook, encoding="utf-8")
    for page in (page_of(c, tmp_path), tmp_path / "notebook.html"):
        tab.call("Page.addScriptToEvaluateOnNewDocument", source="window.alert = () => { window.alerted = true; };")
        tab.open(page)
        assert tab.run("window.alerted === undefined")
        assert tab.run("document.querySelectorAll('img[src=x]').length") == 0
    assert tab.messages == []


def test_the_policy_stops_a_script_that_got_in(tab: browser.Browser, tmp_path: Path) -> None:
    tab.messages.clear()
    text = (
        made_comparison(5)
        .to_html()
        .replace("<main>", "<main><script>window.got = 1</script><b onclick='window.got = 1'>b</b>")
    )
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    tab.open(tmp_path / "page.html")
    tab.run("document.querySelector('b[onclick]').click()")
    assert tab.run("window.got === undefined")
    assert any(re.search("Content Security Policy", message) for message in tab.messages)
