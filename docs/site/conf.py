"""The documents as a searchable site: ``make site``.

Sphinx reads the Markdown files where they are, so that every link between them holds.
"""

from typing import Any

project = html_title = "tap-audit-events"
extensions = ["myst_parser", "sphinxcontrib.mermaid"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md"]
exclude_patterns = ["build", ".*"]
myst_heading_anchors = 4  # as on the forge, each heading has an anchor
myst_fence_as_directive = ["mermaid"]
suppress_warnings = ["misc.highlighting_failure"]  # examples with "…" are not Python
html_theme = "furo"
html_show_copyright = False
html_copy_source = False

NAVIGATION = {
    "Load events": ("getting-started", "settings", "meltano", "loaders", "fields", "recipes"),
    "Other ways": ("export", "python", "airbyte", "spark", "scale", "image", "sandbox"),
    "Into a SIEM": ("siem", "ocsf"),
    "Run it": ("operations", "organizations", "errors", "performance", "upgrading"),
    "Trust it": ("delivery", "proof", "privacy", "/SECURITY"),
    "Change it": ("architecture", "adr/README", "/CONTRIBUTING", "/CHANGELOG", "README"),
}
"""The pages by heading, in docs/ unless they begin with a slash; one that is missing or in no
heading is a warning, which fails the build."""


def add_navigation(app: Any, name: str, source: list[str]) -> None:
    """Add lists of pages, which only the site shows: next to each page, and of the decisions."""
    if name == "README":
        for heading, pages in NAVIGATION.items():
            paths = [page if page.startswith("/") else f"/docs/{page}" for page in pages]
            source[0] += _toctree(*paths, caption=heading)
    elif name == "docs/adr/README":
        decisions = sorted(each for each in app.env.found_docs if each.startswith("docs/adr/0"))
        source[0] += _toctree(*(f"/{decision}" for decision in decisions))


def _toctree(*pages: str, caption: str = "") -> str:
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", "```{toctree}", *options, "", *pages, "```", ""])


def setup(app: Any) -> None:
    """Register the extension that this file is."""
    app.connect("source-read", add_navigation)
