"""What a replay found: simulated latencies, measured ones where the log has them, and how far apart they are."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollart.loadtest.latencies import Quantities, error_pct
from rollart.loadtest.open_loop import Served
from rollart.loadtest.requests import RequestLog
from rollart.report.output import write_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """A request log and what simulated engines made of it."""

    log: RequestLog
    served: Served
    replicas: int

    @property
    def simulated(self) -> Quantities:
        """The latencies of the simulation."""
        return Quantities(self.served.latencies)

    @property
    def measured(self) -> Quantities | None:
        """The latencies of the log, if it has any."""
        measured = self.log.measured
        return Quantities(measured) if measured else None

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON holds it."""
        requests, served = self.log.requests, self.served
        figures: dict[str, Any] = {
            "log": self.log.name,
            "requests": len(requests),
            "replicas": self.replicas,
            "wakes_per_request": served.wakes / len(requests),
            "simulated": {**self.simulated.milliseconds(), "duration_s": served.duration_s},
        }
        measured = self.measured
        if measured is not None:
            measured_s = self._measured_duration_s()
            figures["measured"] = {**measured.milliseconds(), "duration_s": measured_s}
            figures["error_pct"] = error_pct(self.simulated, served.duration_s, measured, measured_s)
        return figures

    def write_requests(self, path: Path) -> None:
        """One CSV line a request, in seconds. Raises OutputError."""
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        names = ["arrival_s", "input_tokens", "output_tokens", "first_token_s", "last_token_s"]
        measured = self.log.measured
        table.writerow(names + (["measured_first_token_s", "measured_last_token_s"] if measured else []))
        for number, (request, met) in enumerate(zip(self.log.requests, self.served.latencies, strict=True)):
            row = [request.arrival_s, request.input_tokens, request.output_tokens, met.first_token_s, met.last_token_s]
            table.writerow(row + list(measured[number][:2] if measured else ()))
        write_text(path, text.getvalue())

    def _measured_duration_s(self) -> float:
        ends = (r.arrival_s + r.measured.last_token_s for r in self.log.requests if r.measured is not None)
        return max(ends) - self.log.requests[0].arrival_s
