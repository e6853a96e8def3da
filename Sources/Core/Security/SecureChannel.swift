/// What stands between a link's frames and its pipe once the prefaces have chosen it: TLS, or nothing.
///
/// It does no I/O: bytes of the pipe go in and plain bytes come out, and the other way round. The link machine owns one for
/// each pipe and calls it on the loop. Plain bytes appear only after the channel knows who is at the other end.
protocol SecureChannel: AnyObject {
    /// Whether the handshake is done and frames may pass.
    var isEstablished: Bool { get }

    /// Begins the handshake; what is to be written goes to `wire`.
    func begin(wire: inout ByteQueue) throws(NighError)

    /// Takes bytes of the pipe. Decrypted ones go to `plain`, replies of the handshake to `wire`.
    func receive(_ bytes: ByteSlice, plain: inout ByteQueue, wire: inout ByteQueue) throws(NighError)

    /// Takes all of `plain`, and puts what stands for it on the pipe into `wire`.
    func seal(_ plain: inout ByteQueue, into wire: inout ByteQueue) throws(NighError)
}

/// Which end of the pipe a link is: the accepting one is the server of a TLS handshake.
package enum LinkSide {
    case dialling
    case accepting
}

/// Which kinds of security this session would use, and how to begin one.
struct SecureChannelOffer: Sendable {
    let accepted: Preface.Security
    let make: @Sendable (Preface.Security, LinkSide) -> any SecureChannel

    /// Frames go as they are. Proves nothing about who is at the other end.
    static let plaintext = SecureChannelOffer(accepted: .plaintext) { _, _ in PlaintextChannel() }
}

/// Passes bytes through by reference.
final class PlaintextChannel: SecureChannel {
    let isEstablished = true

    func begin(wire: inout ByteQueue) {}

    func receive(_ bytes: ByteSlice, plain: inout ByteQueue, wire: inout ByteQueue) { plain.append(bytes) }

    func seal(_ plain: inout ByteQueue, into wire: inout ByteQueue) { wire.append(contentsOf: &plain) }
}
