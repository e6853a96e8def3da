import Testing

@testable import Nigh

/// How the values that programs get print.
@Suite("A value that a program gets", .timeLimit(.minutes(15))) struct DescriptionTests {
    private static let unknown = PeerID(bytes: [UInt8](repeating: 7, count: 32))!
    private let network = "memory:hub=descriptions-\(UInt64.random(in: 0 ... .max))"

    private func session(_ name: String) throws(NighError) -> Session {
        try Session(service: "chat", name: name, transports: network) { settings in
            settings.identity = .temporary
            settings.connectsAutomatically = true
            settings.files = .ask
        }
    }

    private func connected(in session: Session) async throws -> Peer {
        for await case .connected(let peer) in session.events { return peer }
        throw NighError(.conversing, .notConnected)
    }

    @Test("prints as one short line for people")
    func plain() async throws {
        let (puma, lynx) = (try session("Puma"), try session("Lynx"))
        let (asLynx, asPuma) = (try await connected(in: puma), try await connected(in: lynx))
        #expect("\(asLynx)" == "Lynx (\(lynx.id.short)), connected over memory")
        try await asPuma.send("four")
        let message = try #require(await puma.messages.next())
        #expect("\(message)" == "message of 6 bytes from \(lynx.id.short)")
        #expect("\(TypedMessage(sender: asLynx, content: 7))" == "Lynx (\(lynx.id.short)): 7")

        let transfer = try await asPuma.send(file: #filePath)
        let offers = puma.fileOffers
        for await offer in offers {
            #expect("\(offer)".hasPrefix("Lynx (\(lynx.id.short)) offers 1 files and folders, "))
            #expect("\(offer.items[0])".hasPrefix("DescriptionTests.swift, "))
            offer.decline()
            break
        }
        _ = try? await transfer.finish()
        #expect("\(transfer.progress)".hasPrefix("ended, 0 of "))

        let error = NighError(.starting, .unavailable("there is no adapter"), transport: "bluetooth")
        let label = "Lynx (\(lynx.id.short))"
        for (event, text) in [
            (.connected(asLynx), "\(label) is connected over memory"),
            (.peerFound(asLynx), "\(label) can be reached"),
            (.transportUp("tcp"), "tcp can be used"),
            (.transportDown("bluetooth", error), "bluetooth cannot be used: \(error)"),
            (.problem(error), "starting bluetooth: there is no adapter"),
        ] as [(SessionEvent, String)] { #expect("\(event)" == text) }
        #expect("\(puma.peer(Self.unknown))" == "\(Self.unknown.short), unavailable")
        await puma.close()
        await lynx.close()
    }

    @Test("is named in errors as a person knows it, also if it is not connected any more")
    func named() async throws {
        let (puma, lynx) = (try session("Puma"), try session("Lynx"))
        let asLynx = try await connected(in: puma)
        let events = puma.events
        await lynx.close()
        for await case .disconnected in events { break }
        let label = "Lynx (\(lynx.id.short))"
        for call: () async throws -> Void in [
            { try await asLynx.send("late") }, { _ = try await asLynx.ping() },
            { _ = try await asLynx.openStream(named: "late") }, { try asLynx.sendUnreliably(bytes: [1]) },
        ] {
            do { try await call() } catch let error as NighError { #expect(error.peer == label) }
        }
        do throws(PartialSendError) {
            try await puma.send("late", to: [asLynx])
        } catch {
            #expect(error.failures[lynx.id]?.peer == label)
        }
        await puma.close()
    }

    private struct Note: Codable, Sendable { var text: String }

    @Test("that is no value of the type says why in one sentence")
    func unreadable() throws {
        let puma = try session("Puma")
        func reason(_ json: String) -> String? {
            let peer = puma.peer(Self.unknown)
            do throws(NighError) {
                _ = try peer.session.decode(Note.self, from: ByteSlice(Array(json.utf8)), sender: peer)
                return nil
            } catch {
                return "\(error)"
            }
        }
        let beginning = "receiving from \(Self.unknown.short): invalid message: its "
        let end = "; check that both programs use the same types"
        #expect(reason("{}") == "\(beginning)2 bytes are no Note: \"text\" is missing\(end)")
        #expect(
            reason("{\"text\":1}") == "\(beginning)10 bytes are no Note: \"text\" is no String\(end)")
        #expect(reason("what") == "\(beginning)4 bytes are no Note: they are not encoded so\(end)")
        #expect(reason("{\"text\":\"x\"}") == nil)
    }
}
