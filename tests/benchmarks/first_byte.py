"""How long until something comes: from a request to its first byte and its first text.

    .venv/bin/python -m tests.benchmarks.first_byte [--browser]

Starts a server of its own with the scripted demo, asks 50 times, each time when the answer before
has ended, and prints median and 95th percentile in milliseconds. Each figure stands beside that of
``/healthz`` in the same run, which tells how busy the machine is. With ``--browser`` also from Send
to the first text in the page, in Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import statistics
import tempfile
import time
from pathlib import Path

import httpx

from tests.process import PASSWORD, Process

TIMES = 50
QUESTION = "what can you do?"
FIRST_TEXT = b'"delta":{"role"'


def milliseconds(since: float) -> float:
    return (time.perf_counter() - since) * 1000


def report(name: str, figures: list[float]) -> None:
    median, late = statistics.median(figures), statistics.quantiles(figures, n=20)[18]
    print(f"{name:38} median {median:7.1f} ms   p95 {late:7.1f} ms   of {len(figures)}")


def over_rest(process: Process, secret: str) -> None:
    headers = {"Authorization": f"Bearer {secret}"}
    bytes_, texts, health = [], [], []
    with httpx.Client(base_url=process.url, headers=headers, timeout=30) as client:
        for _ in range(TIMES):
            began = time.perf_counter()
            client.get("/healthz")
            health.append(milliseconds(began))
            began = time.perf_counter()
            body = {"content": QUESTION}
            with client.stream("POST", "/api/completions/", json=body) as response:
                seen = b""
                for part in response.iter_raw():
                    if not seen:
                        bytes_.append(milliseconds(began))
                    had_text = FIRST_TEXT in seen
                    seen += part
                    if FIRST_TEXT in seen and not had_text:
                        texts.append(milliseconds(began))
    report("GET /healthz, whole", health)
    report("POST /api/completions/, first byte", bytes_)
    report("POST /api/completions/, first text", texts)


def in_browser(process: Process) -> None:
    from playwright.sync_api import sync_playwright

    figures = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(base_url=process.url)
        page.goto("/login/")
        page.fill("input[name=username]", "ada")
        page.fill("input[name=password]", PASSWORD)
        page.press("input[name=password]", "Enter")
        for _ in range(TIMES):
            page.goto("/")
            page.fill("textarea", QUESTION)
            began = time.perf_counter()
            page.press("textarea", "Enter")
            page.locator(".answer .prose", has_text="Notewire").first.wait_for()
            figures.append(milliseconds(began))
            page.locator("[data-stream]").wait_for(state="detached")
        browser.close()
    report("page, from Send to first text", figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--browser", action="store_true")
    asked = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="notewire-"))
    home.chmod(0o755)
    process = Process(home)
    try:
        process.start()
        secret = process.make_token()
        over_rest(process, secret)
        if asked.browser:
            in_browser(process)
    finally:
        if process.running is not None and process.running.poll() is None:
            process.end(signal.SIGTERM)
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
