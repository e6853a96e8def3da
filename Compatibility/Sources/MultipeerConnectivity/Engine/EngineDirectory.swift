import NighCore
import NighLoop

/// The engines of this program. Control queue only.
enum EngineDirectory {
    /// `nonisolated(unsafe)`: confined to the control queue.
    nonisolated(unsafe) private static var engines: [Engine.Key: Engine] = [:]
    nonisolated(unsafe) private static var sharedLoop: UVEventLoop?

    /// The service of connections that programs arrange themselves.
    static let directService = "nigh-multipeer0"

    /// The engine of a peer of this program's in a service, which begins now if it is not there.
    static func engine(of peer: MCPeerID, service: String) throws(NighError) -> Engine {
        let key = Engine.Key(peer: peer.known.id, service: service)
        if let engine = engines[key] { return engine }
        guard let identity = peer.known.identity else {
            throw NighError(
                .identity, .unavailable("the key of \(peer.displayName) is not on this machine"),
                advice: "only the program that made an MCPeerID can use it as its own")
        }
        let settings = NighMultipeer.settings
        let engine = try Engine(
            key, peer.known, identity: identity, isHidden: service == directService,
            transports: settings.transportsOfPeer(peer) ?? settings.transports)
        engines[key] = engine
        peer.known.use()
        engine.start()
        return engine
    }

    static func forget(_ engine: Engine) {
        if engines[engine.key] === engine { engines[engine.key] = nil }
    }

    /// One loop for all engines.
    static func loop() throws(NighError) -> UVEventLoop {
        if let sharedLoop { return sharedLoop }
        let loop = try UVEventLoop.make()
        sharedLoop = loop
        return loop
    }
}
