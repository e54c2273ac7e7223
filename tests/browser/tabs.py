"""A page in the browser, and what is wrong with it."""

from typing import Any

WAIT = 60_000
_HIDDEN = """() => [...document.querySelectorAll('button, input, select, a')]
    .filter((each) => each.checkVisibility({ visibilityProperty: true }) && !each.closest('.scroll, .skip'))
    .filter((each) => { const box = each.getBoundingClientRect(); return box.left < 0 || box.right > innerWidth; })
    .map((each) => each.outerHTML)"""


class Tab:
    """A tab of the browser; ``complaints`` are messages in its console and errors of its scripts."""

    def __init__(self, browser: Any, *, width: int = 1280, scheme: str = "light") -> None:
        self.page = browser.new_page()
        self.page.set_default_timeout(WAIT)
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme)
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def close(self) -> None:
        """Close the tab; there must be no complaints."""
        self.page.close()
        assert self.complaints == []

    def download(self, selector: str) -> tuple[str, bytes]:
        """Click, and return the name and the content of the file that is downloaded."""
        with self.page.expect_download() as waiting:
            self.page.click(selector)
        with open(waiting.value.path(), "rb") as file:  # noqa: PTH123
            return waiting.value.suggested_filename, file.read()

    @property
    def out_of_reach(self) -> list[str]:
        """Controls beyond the left or right edge, and the page itself if it is wider than the window."""
        wide = self.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        return [*(["the page is wider than the window"] if wide else []), *self.page.evaluate(_HIDDEN)]

    @property
    def contrast(self) -> float:
        """The contrast of the text with the background (WCAG 2), of the body."""
        colours = self.page.evaluate(
            "() => { const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]; }"
        )
        light, dark = sorted((_luminance(colour) for colour in colours), reverse=True)
        return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [float(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
