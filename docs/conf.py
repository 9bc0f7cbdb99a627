"""The documentation site: these pages by Sphinx. `make site` builds it into `build/site`, without any network.

The pages are plain Markdown, which is read well without being built. Formulas become MathML here, since a script of
another host would have to draw them else.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

HERE = Path(__file__).resolve().parent
project = "Prevail"
author = copyright = "the authors of Prevail"  # noqa: A001 - the name is Sphinx's
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
exclude_patterns = ["openapi.json", "_api"]
# Shell with curl in it and texts of answers are shown as they are.
highlight_language = "none"
html_theme = "furo"
html_title = "Prevail"
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["static"]
html_search_scorer = str(HERE / "static" / "scorer.js")
# Pages link to files beside this folder, which the site has not.
_ELSEWHERE = re.compile(r"(?<!!)\[([^\]]+)\]\((?:\.\./)+((?:benchmarks|client|examples)[^)#]*)[^)]*\)")


def _as_mathml(display: str) -> Callable[[Any, Any], None]:
    """What writes a formula."""

    def visit(translator: Any, node: Any) -> None:
        translator.body.append(convert(node.astext(), display=display))
        raise nodes.SkipNode

    return visit


def _without_links_elsewhere(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] = _ELSEWHERE.sub(r"\1 (`\2`)", source[0])
    if page == "http":
        source[0] += http_reference(json.loads((HERE / "openapi.json").read_text()))


def _filter_of_metrics(app: Sphinx, page: str, *_: Any) -> None:
    if page == "metrics/index":
        app.add_js_file("filter.js")


def _metric_pages_need_no_place(app: Sphinx, _: Any) -> list[str]:
    # Their index has them by group; hundreds of lines of navigation would help nobody.
    for page in app.env.found_docs:
        if page.startswith("metrics/") and page != "metrics/index":
            app.env.metadata[page]["orphan"] = True
    return []


def http_reference(document: dict[str, Any]) -> str:
    """Every operation of the OpenAPI document as Markdown, by tag."""
    by_tag: dict[str, list[str]] = {}
    shared = document["components"]["parameters"]
    for path, methods in document["paths"].items():
        for method, said in methods.items():
            if "operationId" in said:
                tag = said.get("tags", ["operations"])[0]
                by_tag.setdefault(tag, []).append(_operation(f"{method.upper()} {path}", said, shared))
    return "".join(f"\n## {tag.capitalize()}\n\n" + "\n".join(found) for tag, found in by_tag.items())


def _operation(address: str, said: dict[str, Any], shared: dict[str, Any]) -> str:
    own = [shared[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in said.get("parameters", [])]
    parameters = "".join(
        f"| `{one['name']}` | {one['in']}{', required' if one.get('required') else ''} | {_cell(one)} |\n"
        for one in own
    )
    table = f"| parameter | in | what |\n| --- | --- | --- |\n{parameters}\n" if parameters else ""
    answers = ", ".join(f"`{status}`" for status in said["responses"])
    about = said.get("description", said.get("summary", ""))
    return f"### `{address}`\n\n{about}\n\n{table}Answers: {answers}. Name of the operation: `{said['operationId']}`.\n"


def _cell(parameter: dict[str, Any]) -> str:
    return " ".join(parameter.get("description", "").split()).replace("|", "\\|")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Sphinx calls this first."""
    app.add_html_math_renderer("mathml", (_as_mathml("inline"), None), (_as_mathml("block"), None))
    app.connect("source-read", _without_links_elsewhere)
    app.connect("html-page-context", _filter_of_metrics)
    app.connect("env-updated", _metric_pages_need_no_place)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
