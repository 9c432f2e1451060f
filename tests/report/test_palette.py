"""Which colour stands for what."""

from importlib.resources import files

from polyurn.report.palette import FILLS, TONES, population_looks


def test_known_populations_have_the_same_colour_on_every_page():
    assert population_looks(["iid", "true"])["iid"] == population_looks(["mdm", "iid"])["iid"]
    looks = population_looks(["true", "mdm", "iid", "oracle", "a", "b", "c", "d", "e"])
    assert len({look.tone for look in looks.values()}) == 9
    assert looks["true"].dash != ()


def test_the_style_sheet_has_the_colours_of_the_palette():
    style = files("polyurn.report").joinpath("style.css").read_text()
    for name, colours in (("tone", TONES), ("fill", FILLS)):
        for i, colour in enumerate(colours):
            assert f"--{name}-{i}: {colour};" in style
