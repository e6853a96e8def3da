/// Counts of the datagrams in one direction of a pipe with faults.
package struct PacketCounts: Hashable, Sendable {
    /// How many passed.
    package var passed = 0
    /// How many were lost.
    package var lost = 0
    /// How many of those that passed came twice.
    package var doubled = 0

    /// Creates counts that are all zero.
    package init() {}
}
