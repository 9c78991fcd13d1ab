-- A table for the lines of perfwalk convert --format ndjson, and questions to it. Each statement ends with a semicolon
-- and begins with a comment that names it; {name:Type} are ClickHouse's parameters.

-- create: profiles of many hosts, kept for 90 days
CREATE TABLE IF NOT EXISTS profiles
(
    start DateTime64(6, 'UTC'),
    end DateTime64(6, 'UTC'),
    host LowCardinality(String),
    type LowCardinality(String),
    unit LowCardinality(String),
    value Int64,
    samples Int64,
    service LowCardinality(String),
    process LowCardinality(String),
    pid UInt32,
    executable LowCardinality(String),
    thread LowCardinality(String),
    tid UInt32,
    container String,
    container_name LowCardinality(String),
    systemd_unit LowCardinality(String),
    attributes Map(LowCardinality(String), String),
    stack Array(LowCardinality(String)),
    modules Array(LowCardinality(String))
)
ENGINE = MergeTree
PARTITION BY toDate(start)
ORDER BY (type, service, start)
TTL toDateTime(start) + INTERVAL 90 DAY;

-- top: the functions with most time of their own, by service, over a day
SELECT service, stack[-1] AS function, modules[-1] AS module, sum(value) AS self,
       round(100 * self / sum(self) OVER (PARTITION BY service), 2) AS percent
FROM profiles
WHERE type = {type:String} AND start >= {day:DateTime} AND start < {day:DateTime} + INTERVAL 1 DAY
GROUP BY service, function, module
ORDER BY service, self DESC, function
LIMIT {rows:UInt32} BY service;

-- totals: with the time of what they call; a function that calls itself counts once
SELECT function, sum(value) AS total
FROM profiles
ARRAY JOIN arrayDistinct(stack) AS function
WHERE type = {type:String} AND service = {service:String}
GROUP BY function
ORDER BY total DESC, function
LIMIT {rows:UInt32};

-- diff: two versions of a service: the share of each function's own time, before and after
SELECT stack[-1] AS function,
       round(100 * sumIf(value, attributes['service.version'] = {before:String})
             / (SELECT sum(value) FROM profiles WHERE type = {type:String} AND service = {service:String}
                AND attributes['service.version'] = {before:String}), 2) AS before,
       round(100 * sumIf(value, attributes['service.version'] = {after:String})
             / (SELECT sum(value) FROM profiles WHERE type = {type:String} AND service = {service:String}
                AND attributes['service.version'] = {after:String}), 2) AS after,
       round(after - before, 2) AS change
FROM profiles
WHERE type = {type:String} AND service = {service:String}
GROUP BY function
HAVING before > 0 OR after > 0
ORDER BY abs(change) DESC, function
LIMIT {rows:UInt32};

-- container: one container over a week, by hour, in seconds of CPU time
SELECT toStartOfHour(start) AS hour, sum(value) / 1e9 AS seconds
FROM profiles
WHERE type = 'cpu' AND container_name = {name:String} AND start >= {week:DateTime} AND start < {week:DateTime} + INTERVAL 7 DAY
GROUP BY hour
ORDER BY hour;

-- folded: a flame graph of a service: flamegraph.pl, inferno, speedscope and perfwalk convert read these lines
SELECT concat(arrayStringConcat(arrayMap(f -> replaceAll(f, ';', ':'), arrayPushFront(stack, process)), ';'), ' ', toString(sum(samples)))
FROM profiles
WHERE type = {type:String} AND service = {service:String}
GROUP BY process, stack
ORDER BY 1;
