import Nigh

/// Invites every peer that offers "chat" over these transports, such as "tcp". Once one is connected, says hello to all
/// connected peers and returns the first message that comes back.
func chatOnce(as name: String, over transports: String, identity: Identity) async throws -> String? {
    let loop = UVEventLoop()
    defer { loop.shutdown() }
    let session = Session(
        SessionConfiguration(service: "chat", name: DisplayName(fitting: name)), identity: identity,
        transports: try TransportRegistry.standard.makeAll(transports), loop: loop)
    session.start()
    for await event in session.events {
        if case .invited(let invitation) = event { session.accept(invitation) }
        guard case .stateChanged(let peer, _, _) = event else { continue }
        if peer.state == .available { try? await session.invite(peer.id) }
        if peer.state == .connected { break }
    }
    try session.trySendToAll(ByteSlice("Hello from \(name)!".utf8))
    let answer = await session.messages.next()
    await session.close()
    return answer.map { String(decoding: $0.bytes, as: UTF8.self) }
}
