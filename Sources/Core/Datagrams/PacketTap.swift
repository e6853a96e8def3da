/// Gets the packets of a datagram path for an observer, as the two ends see them: header and content, without the tag.
/// The bytes are valid during the call.
package struct PacketTap {
    /// Called with each genuine packet, once it is opened.
    let received: (UnsafeRawBufferPointer) -> Void
    /// Called with each packet to send, before it is sealed.
    let sent: (UnsafeRawBufferPointer) -> Void

    package init(
        received: @escaping (UnsafeRawBufferPointer) -> Void, sent: @escaping (UnsafeRawBufferPointer) -> Void
    ) {
        self.received = received
        self.sent = sent
    }
}
