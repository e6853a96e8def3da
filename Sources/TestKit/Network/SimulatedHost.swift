import NighCore
import NighMemory

/// A host on a ``SimulatedNetwork``: one transport for each of its wires, and the faults on them.
public struct SimulatedHost: Sendable {
    struct Line: Sendable {
        let transport: any Transport
        let faults: FaultControl
    }

    private let lines: [Line]

    init(_ lines: [Line]) { self.lines = lines }

    /// The transports of a session on this host, one for each wire.
    public var transports: [any Transport] { lines.map(\.transport) }
    /// The faults on its wires, in the order of the wires.
    public var faults: [FaultControl] { lines.map(\.faults) }

    /// Breaks all links of the host once.
    public func cutLinks() { for line in lines { line.faults.cut() } }

    /// Lets nothing through to and from the host, without a word to either side, until ``bringOnline()``.
    public func takeOffline() { for line in lines { line.faults.block() } }

    /// Ends what ``takeOffline()`` began.
    public func bringOnline() { for line in lines { line.faults.unblock() } }
}
