"""The picture that others show with a link to this site: the logo, and clients of a federation.

PYTHONPATH=tests python docs/make_social.py  # a minute; needs Chromium, as the tests of the page do
"""

import tempfile
from pathlib import Path

import numpy as np

import polyurn as pu
from browser import chromium
from polyurn.report.charts import paper_colours

STATIC = Path(__file__).parent / "_static"
N_CLIENTS, N_LABELS, WIDTH, HEIGHT = 72, 9, 1120, 140
FILLS = [paper_colours()[f"fill-{i}"] for i in range(N_LABELS)]


def main() -> None:
    like = pu.zoo.like("celeba_hair", np.arange(N_LABELS))
    sizes = like.sample(2_000, rng=0).sum(axis=1)
    rows = {
        "a real federation, simulated": like,
        "Dirichlet(0.1), what papers use": pu.Dirichlet([0.1] * N_LABELS, sizes=sizes),
    }
    strips = "".join(
        f"<p>{title}</p>{strip(who.sample(N_CLIENTS, rng=1))}" for title, who in rows.items()
    )
    logo = (STATIC / "logo.svg").read_text(encoding="utf-8")
    page = f"""<!doctype html><meta charset="utf-8"><style>
      body {{ margin: 0; padding: 48px 80px; width: 1120px; height: 544px; background: #fbfaf7;
             color: #1b1f24; font: 26px system-ui, sans-serif }}
      header {{ display: flex; gap: 28px; align-items: center }} header svg {{ width: 130px }}
      h1 {{ margin: 0; font-size: 76px; line-height: 1 }} h1 + p {{ margin: 8px 0 0; font-size: 30px }}
      p {{ margin: 22px 0 6px; color: #5a6370 }} svg {{ display: block }}</style>
      <header>{logo}<div><h1>polyurn</h1><p>Learn what your federation looks like, then simulate it.</p>
      </div></header>{strips}"""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "social.html"
        place.write_text(page, encoding="utf-8")
        driver = chromium()
        size = {"width": 1280, "height": 640, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get(place.as_uri())
        driver.save_screenshot(str(STATIC / "social.png"))
        driver.quit()


def strip(clients):
    """A column for each client, in the order of its most frequent label."""
    shares = clients / clients.sum(axis=1, keepdims=True)
    shares = shares[np.lexsort((-shares.max(axis=1), shares.argmax(axis=1)))]
    bars, step = [], WIDTH / len(shares)
    for i, row in enumerate(shares):
        tops = HEIGHT * (1 - np.cumsum(row))
        for fill, top, part in zip(FILLS, tops, row, strict=True):
            if part:
                bars.append(
                    f'<rect x="{i * step:.1f}" y="{top:.1f}" width="{step - 1:.1f}" '
                    f'height="{HEIGHT * part + 0.4:.1f}" fill="{fill}"/>'
                )
    return f'<svg width="{WIDTH}" height="{HEIGHT}">{"".join(bars)}</svg>'


if __name__ == "__main__":
    main()
