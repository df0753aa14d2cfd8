"""Records tests/vectors/definitions.json: definitions that Pulsar's Java client writes for Define.java.

python tests/vectors/definitions_record/record.py FOLDER_WITH_JARS, those of pulsar-client 4.2.4; prints the file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def main() -> None:
    program = str(Path(__file__).with_name("Define.java"))
    line = ["java", "-cp", f"{sys.argv[1]}/*", program]
    told = subprocess.run(line, check=True, capture_output=True, text=True).stdout
    found = [text.split(" ", 2) for text in told.splitlines() if text.count(" ") >= 2 and "{" in text]
    cases = [{"class": name, "null": allowed == "true", "text": text} for name, allowed, text in found]
    about = {"made_by": "Schema.AVRO and Schema.JSON of Pulsar's Java client 4.2.4; by definitions_record/record.py"}
    print(json.dumps({"about": about, "cases": cases}, indent=1))


if __name__ == "__main__":
    main()
