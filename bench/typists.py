"""Put questions to random typists, and count the yeses that no person can have meant.

Usage: python bench/typists.py [--typists N] [--questions N] [--seed N]. The typists are those of tests/support/typist_scene.py:
they type sentences, words, answers and lines, tap twice, hold keys down and paste. Each gets questions at random times,
through the real keyboard and dialog, in played time. Prints counts; always exits 0: a bench measures, it does not judge.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from question_scene import command
from typist_scene import explains, presses_of, put


def main() -> None:
    parser = argparse.ArgumentParser(description="Put questions to random typists.")
    parser.add_argument("--typists", type=int, default=200, help="number of typists (default: 200)")
    parser.add_argument("--questions", type=int, default=5, help="questions to each typist (default: 5)")
    parser.add_argument("--seed", type=int, default=0, help="number of the first typist (default: 0)")
    options = parser.parse_args()
    answers = Counter[str]()
    accidents: list[str] = []
    with tempfile.TemporaryDirectory() as root:
        asked = command(root, "touch made")
        for seed in range(options.seed, options.seed + options.typists):
            chance = random.Random(seed)
            typist = presses_of(chance)
            for number in range(options.questions):
                question = put(asked, chance, typist, unread=chance.random() < 0.3)
                answers[question.approval.answer.value if question.approval is not None else "none"] += 1
                if question.is_yes and not explains(question):
                    accidents.append(f"typist {seed}, question {number}: {question}")
    counts = ", ".join(f"{answer} {count}" for answer, count in answers.most_common())
    print(f"{options.typists} typists, {answers.total()} questions: {counts}; accidental yes: {len(accidents)}")
    for accident in accidents:
        print(f"  {accident[:2_000]}")


if __name__ == "__main__":
    main()
