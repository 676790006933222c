"""Rewards by a function in processes that Ray Serve starts when there is work and ends when there is none.

The driver calls the deployment through its handle; no proxy is started, so nothing listens for requests. Serve decides
how many processes there are and replaces those that die or hang. It repeats no request.
"""

import asyncio
import logging
import threading
import warnings
from contextlib import suppress
from typing import Any

import ray
from ray import serve
from ray.serve.config import AutoscalingConfig, ProxyLocation
from ray.serve.exceptions import RayServeException
from ray.serve.schema import LoggingConfig

from rollart.domain.cluster import Serverless
from rollart.domain.execution import TaskExecution
from rollart.domain.trajectory import Cause
from rollart.exec.real.cluster import QUIET
from rollart.exec.real.rewards.function import Request, finite
from rollart.exec.real.rewards.replica import RewardReplica
from rollart.exec.real.rewards.scoring import RewardFailure

DEPLOYING = threading.Lock()
"""Held by whoever begins Serve or deploys on it."""
METRICS_S, LOOK_BACK_S = 0.2, 0.5
"""Time between two looks of Serve at how much is asked, and how far it looks back."""
HEALTH_S = 1.0
"""Time between two looks of Serve at the health of a process; three bad ones end it."""


class ServeService:
    """One deployment of Ray Serve, for one task."""

    def __init__(self, task: TaskExecution, path: str, limits: Serverless, name: str, *, shared: bool) -> None:
        """`path`: package.module:name. `name`: of the run, unlike that of any other on the cluster. `shared`: the
        cluster is there when the run is over.

        At most `reward_concurrency` processes, and never more than the cluster's `serverless.max_concurrency`; idle
        ones end after `serverless.keep_alive_s`.
        """
        self._path = path
        self._name = f"{name}-{task.task}"
        self._most = min(task.reward_concurrency, limits.max_concurrency)
        self._keep_alive_s = limits.keep_alive_s
        self._shared = shared
        self._handle: Any = None
        self._began_serve = False
        self.billed_s = 0.0
        self.cold_starts = 0

    async def start(self) -> None:
        """Deploy, with no process yet."""
        self._handle = await asyncio.to_thread(self._deploy)

    def _deploy(self) -> Any:
        with DEPLOYING:
            return self._deploy_alone()

    def _deploy_alone(self) -> Any:
        logging.getLogger("ray.serve").setLevel(logging.ERROR)
        self._began_serve = not _serve_runs()
        # A proxy would be bound to this host's loopback; none is started.
        serve.start(proxy_location=ProxyLocation.Disabled, http_options={"host": "127.0.0.1"})
        deployment = serve.deployment(RewardReplica).options(
            name="reward",
            max_ongoing_requests=1,
            health_check_period_s=HEALTH_S,
            graceful_shutdown_timeout_s=HEALTH_S,
            ray_actor_options={"num_cpus": 0, "runtime_env": {"env_vars": QUIET}},
            logging_config=LoggingConfig(log_level="ERROR", enable_access_log=False),
            autoscaling_config=self._scaling(),
        )
        return serve.run(deployment.bind(self._path), name=self._name, route_prefix=None)

    def _scaling(self) -> AutoscalingConfig:
        with warnings.catch_warnings():
            # Serve is about to rename the interval, and compares the period with the one that it has by default.
            warnings.simplefilter("ignore")
            return AutoscalingConfig(
                min_replicas=0,
                initial_replicas=0,
                max_replicas=self._most,
                target_ongoing_requests=1,
                upscale_delay_s=0.0,
                downscale_delay_s=self._keep_alive_s,
                metrics_interval_s=METRICS_S,
                look_back_period_s=LOOK_BACK_S,
            )

    async def ask(self, request: Request) -> float:
        """Ask once. Raises RewardFailure."""
        response = self._handle.remote(request)
        try:
            answer, seconds, first = await response
            self.billed_s += seconds
            self.cold_starts += first
            return finite(answer)
        except asyncio.CancelledError:
            response.cancel()
            raise
        except (ray.exceptions.RayError, RayServeException, ValueError) as error:
            raise RewardFailure(Cause.ERROR, " ".join(str(error).split())[:400]) from error

    async def close(self) -> None:
        """Take the deployment back, and Serve itself where it was begun here; a cluster of our own ends anyway."""
        if self._handle is None:
            return
        # The handle's thread outlives Ray, and would begin a new one in order to report to it.
        await self._handle.shutdown_async()
        if self._shared:
            await asyncio.to_thread(self._take_back)

    def _take_back(self) -> None:
        with suppress(RayServeException):
            serve.delete(self._name)
        if self._began_serve:
            serve.shutdown()


def _serve_runs() -> bool:
    """Whether somebody else has begun Ray Serve on this cluster."""
    named = ray.util.list_named_actors(all_namespaces=True)
    return any(actor["namespace"] == "serve" for actor in named)
