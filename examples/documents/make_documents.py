"""Make a chart, a Word document, a workbook, slides and a PDF in ``out/``, read them back, and say what is in them.

Runs in the sandbox of a session on the layer ``office``; needs nothing but that layer.
"""

from __future__ import annotations

import platform
from pathlib import Path

import markdown
from report import chart, pdf, readback, slides, word, workbook
from report.rivers import TITLE

OUT = Path(__file__).parent / "out"


def main() -> None:
    OUT.mkdir(exist_ok=True)
    picture = OUT / "rivers.png"
    chart.draw(picture)
    word.write(OUT / "rivers.docx", picture)
    workbook.write(OUT / "rivers.xlsx")
    slides.write(OUT / "rivers.pptx", picture)
    pdf.write(OUT / "rivers.pdf", picture)

    findings = {
        "rivers.png": readback.picture(picture),
        "rivers.docx": readback.word(OUT / "rivers.docx"),
        "rivers.xlsx": readback.workbook(OUT / "rivers.xlsx"),
        "rivers.pptx": readback.slides(OUT / "rivers.pptx"),
        "rivers.pdf": readback.pdf(OUT / "rivers.pdf"),
    }
    table = "\n".join(f"| [{name}]({name}) | {finding} |" for name, finding in findings.items())
    page = markdown.markdown(f"# {TITLE}\n\n| file | what is in it |\n|---|---|\n{table}\n", extensions=["tables"])
    (OUT / "index.html").write_text(f'<!doctype html><meta charset="utf-8">\n{page}\n', encoding="utf-8")

    print(f"{OUT}, made with Python {platform.python_version()}:")
    for name, finding in findings.items():
        print(f"  {name:<12} {finding}")


if __name__ == "__main__":
    main()
