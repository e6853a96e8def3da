/// Counts the calls to transports and pipes that are in progress on one loop. While there are any, no event may be
/// reported.
package final class CallDepth {
    var count = 0

    /// Creates a counter with no call in progress.
    package init() {}
}
