import Testing

@testable import Nigh

/// How the values that programs get print.
@Suite("A value that a program gets", .timeLimit(.minutes(15))) struct DescriptionTests {
    private static let unknown = PeerID(bytes: [UInt8](repeating: 7, count: 32))!
    private let network = TestNetwork()

    @Test func `Each value that a program gets prints as one short line for people`() async throws {
        try await network.pair {
            $0.files = .ask
        } _: { puma, lynx, asLynx in
            let label = "Lynx (\(lynx.id.short))"
            let asPuma = try await lynx.connectedPeer()
            try await asPuma.send("four")
            let message = try #require(await puma.messages.next())
            #expect("\(message)" == "message of 6 bytes from \(lynx.id.short)")
            #expect("\(TypedMessage(sender: asLynx, content: 7))" == "\(label): 7")

            let transfer = try await asPuma.send(file: #filePath)
            let offer = try await puma.fileOffers.first()
            #expect("\(offer)".hasPrefix("\(label) offers 1 files and folders, "))
            #expect("\(offer.items[0])".hasPrefix("DescriptionTests.swift, "))
            offer.decline()
            _ = try? await transfer.finish()
            #expect("\(transfer.progress)".hasPrefix("ended, 0 of "))

            let error = NighError(.starting, .unavailable("there is no adapter"), transport: "bluetooth")
            for (event, text) in [
                (.connected(asLynx), "\(label) is connected over memory"),
                (.peerFound(asLynx), "\(label) can be reached"),
                (.transportUp("tcp"), "tcp can be used"),
                (.transportDown("bluetooth", error), "bluetooth cannot be used: \(error)"),
                (.problem(error), "starting bluetooth: there is no adapter"),
            ] as [(SessionEvent, String)] { #expect("\(event)" == text) }
            #expect("\(asLynx)" == "\(label), connected over memory")
            #expect("\(puma.peer(Self.unknown))" == "\(Self.unknown.short), unavailable")
        }
    }

    @Test func `Errors name a peer as a person knows it, also if it has left`() async throws {
        try await network.pair { puma, lynx, asLynx in
            let events = puma.events
            await lynx.close()
            _ = await events.peerLeft()
            let label = "Lynx (\(lynx.id.short))"
            for call: () async throws -> Void in [
                { try await asLynx.send("late") }, { _ = try await asLynx.ping() },
                { _ = try await asLynx.openStream(named: "late") },
                { try asLynx.sendUnreliably(bytes: [1]) },
            ] {
                let error = await #expect(throws: NighError.self) { try await call() }
                #expect(error?.peer == label)
            }
            let error = await #expect(throws: PartialSendError.self) {
                try await puma.send("late", to: [asLynx])
            }
            #expect(error?.failures[lynx.id]?.peer == label)
        }
    }

    private struct Note: Codable, Sendable { var text: String }

    @Test(arguments: [
        ("{}", "2 bytes are no Note: \"text\" is missing"),
        ("{\"text\":1}", "10 bytes are no Note: \"text\" is no String"),
        ("what", "4 bytes are no Note: they are not encoded so"),
    ])
    func `A message of another type says why in one sentence`(json: String, reason: String) throws {
        let peer = try network.session("Puma").peer(Self.unknown)
        let error = #expect(throws: NighError.self) {
            try peer.session.decode(Note.self, from: ByteSlice(Array(json.utf8)), sender: peer)
        }
        #expect(
            "\(try #require(error))" == "receiving from \(Self.unknown.short): invalid message: its \(reason)"
                + "; check that both programs use the same types")
    }
}
