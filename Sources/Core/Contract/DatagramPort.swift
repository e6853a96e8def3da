/// Sends and receives datagrams along a pipe: each arrives whole or not at all, perhaps late, out of order or twice.
///
/// A transport with datagrams returns a port from ``Pipe/openDatagrams()``. The port belongs to that pipe: it is closed
/// by the session, and by the pipe's end.
///
/// ## The contract, for every member
/// - Everything happens on the transport's loop.
/// - The port never calls its handler from inside a call made to the port, and not after `close`.
/// - It never waits: a packet that cannot leave at once is dropped.
/// - It sends to the host at the other end of the pipe, and to sources that have sent packets here, and to no other.
public protocol DatagramPort: AnyObject {
    /// Where the other end sends packets for this port, in the transport's own notation: at most 64 bytes. Empty if the
    /// address of the pipe's end is enough. Packets pass a relay between the two ends only if it is empty.
    var place: [UInt8] { get }

    /// The length of the longest packet that the port can send and receive: at least 1,200 bytes.
    var longestPacket: Int { get }

    /// Sets the handler and begins to receive. Called once.
    ///
    /// - Parameters:
    ///   - prefix: the first eight bytes of each packet for this port, as a big-endian number. Ports that share a
    ///     socket are told apart by it, whatever the source of a packet is. Nil if the caller does not know it, as a
    ///     relay does not: then the port gets the packets of the other end of its pipe, which is `source(of: [])`.
    func start(handler: any DatagramHandler, prefix: UInt64?)

    /// Returns the source that packets from this place of the other end have; nil if the place makes no sense here. The
    /// empty place is the other end of the pipe itself.
    func source(of place: [UInt8]) -> DatagramSource?

    /// Sends a packet, to a source that ``source(of:)`` has returned or from which packets came.
    func send(_ packet: UnsafeRawBufferPointer, to source: DatagramSource) -> DatagramOutcome

    /// Ends the port. The second and later calls do nothing.
    func close()
}

/// Receives the packets of a ``DatagramPort``. All calls come on the loop.
public protocol DatagramHandler: AnyObject {
    /// Delivers a packet, at least one byte. The handler may change the bytes, which are valid during the call.
    func datagramPort(
        _ port: any DatagramPort, received packet: UnsafeMutableRawBufferPointer, from source: DatagramSource)
}

/// The source of a packet, in the port's own notation. Nobody else reads it; equal values are one source.
public struct DatagramSource: Hashable, Sendable {
    /// The source in the notation of the port, of 32 bytes at most.
    public let first, second, third, fourth: UInt64

    /// Creates a source.
    public init(_ first: UInt64, _ second: UInt64 = 0, _ third: UInt64 = 0, _ fourth: UInt64 = 0) {
        self.first = first
        self.second = second
        self.third = third
        self.fourth = fourth
    }
}

/// The outcome of sending a packet.
public enum DatagramOutcome: Hashable, Sendable {
    /// It has left.
    case sent
    /// It was dropped, because it could not leave at once.
    case dropped
    /// It was dropped, because it is longer than the network carries.
    case tooLong
}
