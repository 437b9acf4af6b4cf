-- Ends wrk's output with one line of JSON for bench/load.py.
function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"duration_us":%d,"p99_us":%d,"wrong":%d}\n',
    summary.requests, summary.duration, latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
