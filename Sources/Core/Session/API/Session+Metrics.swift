extension Session {
    /// The counts and measurements of the session and its peers as they are now, for logs and metrics systems. The page
    /// docs/reference/metrics.md lists them. A peer's counts begin anew with each conversation. Waits for nothing but
    /// the session's loop, so cancelling the task changes nothing.
    public nonisolated(nonsending) func metrics() async -> [Metric] { await statistics().metrics }
}
