import NighCore

// Connections that the programs arrange themselves: each tells the other how to reach it, by its own means.
extension SessionCore {
    /// The data by which one program can connect to the other.
    private struct ConnectionData {
        static let mark: UInt32 = 0x6E6D_7063
        var peer: PeerID
        var session: UInt64
        var addresses: [String]

        init(peer: PeerID, session: UInt64, addresses: [String]) {
            self.peer = peer
            self.session = session
            self.addresses = addresses
        }

        init?(_ data: Data) {
            guard
                let parsed = data.withUnsafeBytes({ bytes -> ConnectionData? in
                    var reader = ByteReader(bytes)
                    guard reader.number(UInt32.self) == Self.mark,
                        let peer = reader.bytes(PeerID.byteCount).flatMap({ PeerID(bytes: $0) }),
                        let session = reader.number(UInt64.self), let addresses = reader.fields()
                    else { return nil }
                    return ConnectionData(
                        peer: peer, session: session,
                        addresses: addresses.map { String(decoding: $0, as: UTF8.self) })
                })
            else { return nil }
            self = parsed
        }

        var data: Data {
            var writer = ByteWriter()
            writer.put(Self.mark)
            writer.put(rest: peer.bytes)
            writer.put(session)
            for address in addresses { writer.put(field: Array(address.utf8)) }
            return Data(writer.bytes)
        }
    }

    /// The time that both programs have to call `connectPeer`.
    private static let directTime: TimeInterval = 30

    func connectionData(_ completion: @escaping @Sendable (Result<Data, any Error>) -> Void) {
        Control.async { [self] in
            do throws(NighError) {
                let engine = try EngineDirectory.engine(of: local, service: EngineDirectory.directService)
                // So that a disconnect ends it.
                uses(engine)
                let (peer, number) = (local.known.id, number)
                engine.whenListening { addresses in
                    completion(
                        .success(ConnectionData(peer: peer, session: number, addresses: addresses).data))
                }
            } catch {
                completion(.failure(MCError(error)))
            }
        }
    }

    func connect(to peerID: MCPeerID, with data: Data) {
        let peerID = Handover(peerID)
        Control.async { [self] in
            let id = peerID.value.known.id
            guard let data = ConnectionData(data), data.peer == id,
                let engine = try? EngineDirectory.engine(of: local, service: EngineDirectory.directService)
            else {
                return notify(peerID.value, .notConnected)
            }
            // Members may have introduced the two to each other.
            guard link(to: id, session: data.session) == nil else { return }
            let peer = engine.peer(id, named: peerID.value.known.name)
            peer.listening = data.addresses
            join(id, session: data.session, in: engine, timeout: Self.directTime, isReported: true)
            engine.reconsiderJoins(into: self)
        }
    }
}
