"""The slow, obviously right engine: one iteration per wake-up, loops over requests, a table of block ids each.

It keeps the rules of `rollart.serving.engine` with none of its arithmetic: no closed form, no segments, no sums.
"""

from math import inf

from rollart.serving import Completion, EngineConfig, Loss, Request, Role
from rollart.serving.prefill_first import MOST_RESERVED_TOKENS, RESERVED_SHARE


class Row:
    """What the oracle knows of one request."""

    def __init__(self, request: Request, now: float, block_size: int) -> None:
        self.request = request
        self.submitted_s = now
        self.made = 0
        self.computed = 0
        self.table: list[int] = []
        self.prompt_blocks = (request.shared_tokens - 1) // block_size if request.shared_tokens else 0
        self.share = 0
        self.reusable = request.reusable_tokens
        self.peak = min(self.reusable, request.context_tokens - 1) // block_size * block_size
        self.loss = Loss.HISTORY
        self.kv_arrives = request.role is Role.DECODE
        self.decoding = False
        self.scheduled_s: float | None = None
        self.first_token_s: float | None = None
        self.cached = 0
        self.recomputed = 0
        self.preemptions = 0

    @property
    def known(self) -> int:
        return self.request.context_tokens + self.made


class BlockTables:
    """Blocks by id: a free list, a list of idle ids from the oldest on, and a name for each findable block."""

    def __init__(self, blocks: int, size: int, caching: bool) -> None:
        self.size = size
        self.caching = caching
        self.free = list(range(blocks))
        self.idle: list[int] = []
        self.users = [0] * blocks
        self.block_of: dict[tuple[object, ...], int] = {}
        self.chain_start: dict[int, int] = {}

    def available(self) -> int:
        return len(self.free) + len(self.idle)

    def take(self) -> int:
        if self.free:
            block = self.free.pop()
        else:
            block = self.idle.pop(0)
            self.block_of = {name: other for name, other in self.block_of.items() if other != block}
        self.users[block] = 1
        return block

    def find(self, row: Row, group_shares: set[int]) -> list[int]:
        """The cached prefix of a row, as block ids; a row that would share another length shares nothing."""
        row.share = 0
        if not self.caching:
            return []
        if not group_shares <= {row.prompt_blocks}:
            row.prompt_blocks = 0
        row.share = row.prompt_blocks
        names: list[tuple[object, ...]] = [("group", row.request.group, i) for i in range(row.share)]
        if self.chain_start.get(row.request.chain) == row.share:
            whole = min(row.reusable, row.known - 1) // self.size
            names += [("chain", row.request.chain, i) for i in range(row.share, whole)]
        found = []
        for name in names:
            if name not in self.block_of:
                break
            found.append(self.block_of[name])
        return found

    def hold(self, row: Row, found: list[int]) -> None:
        for block in found:
            if self.users[block] == 0:
                self.idle.remove(block)
            self.users[block] += 1
        row.table = list(found)
        self.forget_chain(row.request.chain)

    def forget_chain(self, chain: int) -> None:
        self.chain_start.pop(chain, None)
        self.block_of = {name: b for name, b in self.block_of.items() if name[:2] != ("chain", chain)}

    def name_prompt(self, row: Row, computed: int) -> None:
        if self.caching:
            for i in range(min(row.share, computed // self.size)):
                block = self.block_of.setdefault(("group", row.request.group, i), row.table[i])
                assert block == row.table[i]

    def release(self, row: Row) -> None:
        whole = row.computed // self.size if self.caching else 0
        if whole > row.share:
            self.forget_chain(row.request.chain)
            self.chain_start[row.request.chain] = row.share
        for i, block in reversed(list(enumerate(row.table))):
            self.users[block] -= 1
            if i >= whole:
                self.free.append(block)
            elif i >= row.share:
                self.block_of["chain", row.request.chain, i] = block
                self.idle.append(block)
            elif self.users[block] == 0:
                self.idle.append(block)
        row.table = []

    def drop_idle(self) -> None:
        self.free += self.idle
        self.idle = []
        self.block_of = {}
        self.chain_start = {}


class Oracle:
    """Same methods as `rollart.serving.Engine`."""

    def __init__(self, config: EngineConfig, costs: object) -> None:
        self.config, self.costs = config, costs
        self.kv = BlockTables(config.kv_blocks, config.block_size, config.prefix_caching)
        self.next_wake = inf
        self.rows: dict[int, Row] = {}
        self.arrivals: list[Row] = []
        self.aborts: list[tuple[float, Row]] = []
        self.queue: list[Row] = []
        self.rows_running: list[Row] = []
        self.held: list[Row] = []
        self.scheduled: list[tuple[Row, int]] = []
        self.stepping = self.suspended = self.updating = self.preempting = False
        self.start_s = 0.0
        self.sums = dict.fromkeys(
            ("iterations", "prefill_tokens", "decode_tokens", "cached_tokens", "preemptions", *Loss), 0
        )
        self.busy_s = 0.0
        self.group_share: dict[int, int] = {}

    # What the caller does.

    def submit(self, request: Request, now: float) -> None:
        row = self.rows[request.request_id] = Row(request, now, self.config.block_size)
        self.arrivals.append(row)
        if not self.stepping and not self.suspended:
            self.next_wake = min(self.next_wake, now)

    def abort(self, request_id: int, now: float) -> int:
        row = self.rows.pop(request_id)
        made = self.made_by(row, now)
        if self.stepping:
            self.aborts.append((now, row))
        else:
            self.see(inf)
            self.remove(row)
        return made

    def kill(self, now: float) -> list[tuple[int, int]]:
        made = [(key, self.made_by(row, now)) for key, row in self.rows.items()]
        sums, busy_s = self.sums, self.busy_s + (now - self.start_s if self.stepping else 0.0)
        self.__init__(self.config, self.costs)
        self.sums, self.busy_s = sums, busy_s
        return made

    def made_by(self, row: Row, now: float) -> int:
        ended = self.stepping and self.next_wake <= now
        return row.made + (ended and any(r is row and self.makes_token(r, q) for r, q in self.scheduled))

    def suspend(self, now: float) -> float:
        self.suspended = True
        if not self.stepping:
            self.next_wake = inf
            return now
        return self.next_wake

    def resume(self, now: float) -> None:
        if self.suspended:
            self.suspended = False
            if not self.stepping and self.rows:
                self.next_wake = now

    def update_weights(self, now: float) -> None:  # noqa: ARG002
        if self.config.keep_kv_on_update:
            return
        if self.stepping:
            self.updating = True
        else:
            self.see(inf)
            self.lose_kv()

    def advance(self, now: float) -> list[Completion]:
        done: list[Completion] = []
        while self.next_wake <= now:
            time = self.next_wake
            if not self.stepping:
                self.begin(time, inf)
                continue
            seen = self.start_s if self.config.scheduling_lag else time
            self.end(time, done)
            if self.suspended or self.updating:
                self.see(inf)
                self.let_go()
                if self.updating:
                    self.updating = False
                    self.lose_kv()
                self.next_wake = inf
                if not self.suspended:
                    self.begin(time, inf)
            else:
                self.begin(time, seen)
        return done

    # What an iteration does.

    def begin(self, now: float, seen: float) -> None:
        if seen == inf:
            self.let_go()
        self.see(seen)
        self.scheduled = []
        self.preempting = False
        budget = self.config.max_num_batched_tokens
        if self.config.scheduler == "sglang":
            self.schedule_prompts_first(budget, now)
        else:
            budget = self.schedule_running(budget, self.rows_running)
            if not self.preempting:
                self.schedule_waiting(budget, now)
        if not self.scheduled:
            if seen < inf:
                self.begin(now, inf)
            else:
                assert not self.queue
                self.next_wake = inf
            return
        self.stepping, self.start_s = True, now
        self.next_wake = now + self.duration_s()
        self.check()

    def schedule_prompts_first(self, budget: int, now: float) -> None:
        budget = self.schedule_running(budget, [row for row in self.rows_running if not row.decoding])
        if not self.preempting:
            self.schedule_waiting(budget, now)
        if not self.scheduled:
            self.schedule_running(budget, [row for row in self.rows_running if row.decoding])

    def has_room(self, row: Row) -> bool:
        """SGLang's estimate: prompt and output of the row, and what those that run may still need."""

        def left(r: Row) -> int:
            return min(r.request.output_tokens - r.made, MOST_RESERVED_TOKENS)

        if self.config.scheduler != "sglang" or not self.rows_running:
            return True
        fresh = [r for r in self.rows_running if r in self.admitted_now]
        old = [r for r in self.rows_running if r not in self.admitted_now]
        promised = sum(r.known + left(r) - 1 - len(r.table) for r in fresh)
        reserved = promised + RESERVED_SHARE * sum(left(r) for r in old)
        return row.known + left(row) - 1 + reserved <= self.kv.available()

    def schedule_running(self, budget: int, rows: list[Row]) -> int:
        for row in list(rows):
            if row not in self.rows_running:
                break
            tokens = 1 if row.decoding else min(row.known - row.computed, budget)
            while self.lacking(row, row.computed + tokens) > self.kv.available():
                victim = self.rows_running.pop()
                self.send_back(victim, Loss.PREEMPTION)
                victim.preemptions += 1
                self.sums["preemptions"] += 1
                self.preempting = True
                if victim is row:
                    break
            else:
                self.give(row, tokens)
                budget -= tokens
        return budget

    def schedule_waiting(self, budget: int, now: float) -> None:
        self.admitted_now: list[Row] = []
        while self.queue and budget > 0:
            if len(self.rows_running) + len(self.held) >= self.config.max_num_seqs:
                return
            row = self.queue[0]
            if not self.has_room(row):
                return
            found = self.kv.find(row, self.shares_of(row))
            computed = len(found) * self.config.block_size
            tokens = min(row.known - computed, budget)
            end = computed + tokens
            if row.kv_arrives:
                tokens, end = 1, row.known
            idle_hits = sum(self.kv.users[block] == 0 for block in found)
            if -(-end // self.config.block_size) - len(found) > self.kv.available() - idle_hits:
                return
            self.admitted_now.append(self.queue.pop(0))
            self.kv.hold(row, found)
            self.rows_running.append(row)
            if row.scheduled_s is None:
                row.scheduled_s, row.cached = now, computed
                self.sums["cached_tokens"] += computed
            row.computed = computed
            if row.kv_arrives:
                row.computed, row.decoding = row.known - 1, True
            self.give(row, tokens)
            budget -= tokens

    def shares_of(self, row: Row) -> set[int]:
        """Lengths at which the row's group shares its prompt here: of holders, or of idle blocks."""
        group = row.request.group
        holders = {r.share for r in self.rows_running + self.held if r.share and r.request.group == group}
        cached = any(name[:2] == ("group", group) for name in self.kv.block_of)
        return holders or ({self.group_share[group]} if cached else set())

    def lacking(self, row: Row, tokens: int) -> int:
        return -(-tokens // self.config.block_size) - len(row.table)

    def give(self, row: Row, tokens: int) -> None:
        end = row.computed + tokens
        row.table += [self.kv.take() for _ in range(self.lacking(row, end))]
        self.kv.name_prompt(row, end)
        if row.share:
            self.group_share[row.request.group] = row.share
        self.scheduled.append((row, tokens))
        if not row.decoding:
            again = max(0, min(end, row.peak) - row.computed)
            row.recomputed += again
            self.sums[row.loss] += again
            self.sums["prefill_tokens"] += tokens

    def duration_s(self) -> float:
        decodes = [row for row, _ in self.scheduled if row.decoding]
        chunks = [(tokens, row.computed) for row, tokens in self.scheduled if not row.decoding]
        resident = sum(row.known for row in decodes)
        if chunks:
            return self.costs.mixed_s(len(decodes), resident, chunks)
        piece = self.costs.decode(len(decodes), resident)
        return piece.base_s + piece.per_token_s * resident

    @staticmethod
    def makes_token(row: Row, tokens: int) -> bool:
        return row.decoding or row.computed + tokens == row.known

    def end(self, now: float, done: list[Completion]) -> None:
        self.stepping = False
        self.busy_s += now - self.start_s
        self.sums["iterations"] += 1
        self.let_go()
        finished = []
        for row, tokens in self.scheduled:
            makes = self.makes_token(row, tokens)
            row.computed += tokens
            self.sums["decode_tokens"] += row.decoding
            if makes:
                row.made += 1
                row.decoding = True
                row.first_token_s = now if row.first_token_s is None else row.first_token_s
                if row.made == row.request.output_tokens:
                    finished.append(row)
        for row in finished:
            self.rows_running.remove(row)
            self.held.append(row)
            if self.rows.get(row.request.request_id) is row:
                del self.rows[row.request.request_id]
                done.append(self.completion(row, now))
        if not self.config.scheduling_lag:
            self.let_go()

    @staticmethod
    def completion(row: Row, now: float) -> Completion:
        begun = row.scheduled_s if row.request.role is Role.DECODE else row.first_token_s
        return Completion(
            request_id=row.request.request_id,
            time_s=now,
            output_tokens=row.made,
            cached_tokens=row.cached,
            queue_s=row.scheduled_s - row.submitted_s,
            first_token_s=row.first_token_s - row.submitted_s,
            prefill_s=begun - row.scheduled_s,
            decode_s=now - begun,
            recomputed_tokens=row.recomputed,
            preemptions=row.preemptions,
            payload=row.request.payload,
        )

    # Leaving.

    def let_go(self) -> None:
        for row in self.held:
            self.kv.release(row)
        self.held = []

    def see(self, seen: float) -> None:
        while self.arrivals and self.arrivals[0].submitted_s < seen:
            self.queue.append(self.arrivals.pop(0))
        while self.aborts and self.aborts[0][0] < seen:
            self.remove(self.aborts.pop(0)[1])

    def remove(self, row: Row) -> None:
        if row in self.rows_running:
            self.rows_running.remove(row)
            self.kv.release(row)
        elif row in self.queue:
            self.queue.remove(row)

    def send_back(self, row: Row, loss: Loss) -> None:
        self.kv.release(row)
        row.loss, row.peak, row.reusable = loss, max(row.peak, row.computed), row.known
        row.computed, row.decoding, row.kv_arrives = 0, False, False
        self.queue.insert(0, row)

    def lose_kv(self) -> None:
        for row in self.queue:
            if row.kv_arrives:
                row.kv_arrives, row.peak, row.loss = False, row.known - 1, Loss.UPDATE
        while self.rows_running:
            self.send_back(self.rows_running.pop(), Loss.UPDATE)
        self.kv.drop_idle()

    def check(self) -> None:
        """Every block is free, idle or in the tables of as many rows as it has users."""
        tables = [block for row in self.rows_running + self.held for block in row.table]
        used = set(tables)
        assert len(self.kv.free) + len(self.kv.idle) + len(used) == self.config.kv_blocks
        assert all(tables.count(block) == self.kv.users[block] for block in used)
