import GameKit
import Testing

/// Sending and receiving, through the API alone.
@Suite("The data of a GKSession", .timeLimit(.minutes(15))) @MainActor struct DataTests {
    private let game = Player.newGame()

    @Test(
        "arrive in order and whole, whatever their size, with the handler's context", arguments: Wire.allCases
    )
    func order(wire: Wire) async throws {
        let context = UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1)
        defer { context.deallocate() }
        let host = Player("Puma", of: game, .server, over: wire)
        host.session.setDataReceiveHandler(host.recorder, withContext: context)
        let guest = Player("Lynx", of: game, .client, over: wire)
        await guest.join(host)
        let sizes = [0, 1, 20_000, 3, 1 << 20, 87_000, 2]
        let sent = sizes.enumerated().map { Data(repeating: UInt8($0.offset), count: $0.element) }
        for data in sent { try guest.session.send(data, toPeers: [host.id], with: .reliable) }
        await host.wait { $0.data(from: guest).count == sent.count }
        #expect(host.data(from: guest) == sent)
        #expect(host.recorder.contexts.allSatisfy { $0 == context })
        try host.session.sendData(toAllPeers: Data([9]), with: .reliable)
        await guest.wait { $0.data(from: host) == [Data([9])] }
        #expect(guest.recorder.contexts == [nil])
    }

    @Test("go to all, or to those who are named and nobody else")
    func receivers() async throws {
        let host = Player("Puma", of: game, .server, over: .memory)
        let guests = ["Lynx", "Hare", "Wolf"].map { Player($0, of: game, .client, over: .memory) }
        for guest in guests { await guest.join(host) }
        try host.session.send(Data([1]), toPeers: [guests[0].id, guests[2].id], with: .reliable)
        try host.session.sendData(toAllPeers: Data([2]), with: .reliable)
        for guest in guests { await guest.wait { $0.data(from: host).last == Data([2]) } }
        #expect(guests.map { $0.data(from: host).count } == [2, 1, 2])
    }

    @Test("go to all who are connected, also while one of them is being disconnected")
    func whileOneLeaves() async throws {
        let host = Player("Puma", of: game, .server, over: .memory)
        // Only one of them reads, so for the other one data wait that must arrive before it is disconnected.
        let guests = ["Lynx", "Hare"].map {
            Player($0, of: game, .client, over: .memory, handlesData: $0 == "Lynx")
        }
        for guest in guests { await guest.join(host) }
        try host.session.send(Data(count: 8 << 20), toPeers: [guests[1].id], with: .reliable)
        host.session.disconnectPeer(fromAllPeers: guests[1].id)
        for number in 0..<100 {
            try host.session.sendData(toAllPeers: Data([UInt8(number)]), with: .reliable)
        }
        await guests[0].wait { $0.data(from: host).count == 100 }
    }

    @Test("arrive before the end of the connection is told", arguments: Wire.allCases)
    func beforeTheEnd(wire: Wire) async throws {
        let host = Player("Puma", of: game, .server, over: wire)
        let guest = Player("Lynx", of: game, .client, over: wire)
        await guest.join(host)
        for number in 0..<200 {
            try guest.session.send(
                Data(repeating: UInt8(number), count: 2_000), toPeers: [host.id], with: .reliable)
        }
        guest.session.disconnectFromAllPeers()
        // The main queue is busy until the connection has ended, so all of it is reported at once.
        while (try? host.session.send(Data(), toPeers: [guest.id], with: .reliable)) != nil { usleep(1_000) }
        await host.wait { $0.events.last == .state(guest.id, .stateDisconnected) }
        #expect(host.data(from: guest).map(\.first) == (0..<200).map { UInt8($0) })
    }

    @Test(
        "are sent unreliably as well, also if they are too large for that",
        arguments: [1, 8_192, 8_193, 100_000])
    func unreliable(size: Int) async throws {
        let host = Player("Puma", of: game, .server, over: .memory)
        let guest = Player("Lynx", of: game, .client, over: .memory)
        await guest.join(host)
        try guest.session.sendData(toAllPeers: Data(repeating: 1, count: size), with: .unreliable)
        await host.wait { $0.data(from: guest).first?.count == size }
    }

    @Test("wait for a data handler, and for the next one after the last has gone")
    func withoutHandler() async throws {
        let host = Player("Puma", of: game, .server, over: .memory, handlesData: false)
        let guest = Player("Lynx", of: game, .client, over: .memory)
        await guest.join(host)
        try guest.session.sendData(toAllPeers: Data([1]), with: .reliable)
        // It is on the other side when the peer's answer is here.
        try host.session.sendData(toAllPeers: Data(), with: .reliable)
        await guest.wait { $0.data(from: host).count == 1 }
        #expect(host.data(from: guest).isEmpty)
        do {
            let recorder = EventRecorder()
            host.session.setDataReceiveHandler(recorder, withContext: nil)
            await recorder.wait { recorder.events == [.data(guest.id, Data([1]))] }
        }
        try guest.session.sendData(toAllPeers: Data([2]), with: .reliable)
        host.session.setDataReceiveHandler(nil, withContext: nil)
        host.session.setDataReceiveHandler(host.recorder, withContext: nil)
        await host.wait { $0.data(from: guest) == [Data([2])] }
    }

    @Test("that wait for a handler go on waiting while another peer leaves, whose own are dropped")
    func withoutHandlerWhileOthersLeave() async throws {
        let host = Player("Puma", of: game, .server, over: .memory, handlesData: false)
        let (guest, other) = (
            Player("Lynx", of: game, .client, over: .memory), Player("Hare", of: game, .client, over: .memory)
        )
        for player in [guest, other] { await player.join(host) }
        for player in [guest, other] { try player.session.sendData(toAllPeers: Data([1]), with: .reliable) }
        other.session.disconnectFromAllPeers()
        await host.wait { $0.events.last == .state(other.id, .stateDisconnected) }
        host.session.setDataReceiveHandler(host.recorder, withContext: nil)
        await host.wait { $0.data(from: guest) == [Data([1])] }
        #expect(host.data(from: other).isEmpty)
    }

    @Test("are refused where they cannot be sent, and then nobody gets them")
    func refusals() async throws {
        let host = Player("Puma", of: game, .server, over: .memory)
        let guest = Player("Lynx", of: game, .client, over: .memory)
        await guest.join(host)
        func code(_ call: () throws -> Void) -> GKSessionError.Code? {
            do {
                try call()
                return nil
            } catch {
                return (error as? GKSessionError)?.code
            }
        }
        let session = host.session
        #expect(
            code { try session.send(nil, toPeers: [guest.id], with: .reliable) } == .invalidParameterError)
        #expect(code { try session.send(Data(), toPeers: nil, with: .reliable) } == .invalidParameterError)
        #expect(code { try session.send(Data(), toPeers: [], with: .reliable) } == .invalidParameterError)
        #expect(code { try session.send(Data(), toPeers: [7], with: .reliable) } == .invalidParameterError)
        #expect(code { try session.sendData(toAllPeers: nil, with: .reliable) } == .invalidParameterError)
        #expect(
            code { try session.send(Data([1]), toPeers: [guest.id, "Hare"], with: .reliable) }
                == .notConnectedError)
        let tooLarge = Data(count: 16 << 20 + 1)
        #expect(code { try session.sendData(toAllPeers: tooLarge, with: .reliable) } == .dataTooBigError)
        try session.sendData(toAllPeers: Data([2]), with: .reliable)
        await guest.wait { !$0.data(from: host).isEmpty }
        #expect(guest.data(from: host) == [Data([2])])
        let alone = GKSession(sessionID: game, displayName: "Wolf", sessionMode: .peer)!
        try alone.sendData(toAllPeers: Data([1]), with: .reliable)
    }

    @Test("that nobody takes are bounded: sending fails, and everything that was accepted arrives")
    func slowProgram() async throws {
        let host = Player("Puma", of: game, .server, over: .memory)
        let guest = Player("Lynx", of: game, .client, over: .memory)
        await guest.join(host)
        // The main thread is busy with sending, so it takes nothing.
        var accepted = 0
        do {
            while accepted < 200 {
                try guest.session.sendData(
                    toAllPeers: Data(repeating: UInt8(accepted), count: 1 << 20), with: .reliable)
                accepted += 1
            }
        } catch GKSessionError.transportError {}
        #expect(64...70 ~= accepted)
        await host.wait { $0.data(from: guest).count == accepted }
        #expect(host.data(from: guest).map(\.first) == (0..<accepted).map { UInt8($0) })
        try guest.session.sendData(toAllPeers: Data([1]), with: .reliable)
    }

    @Test(
        "need a handler that conforms to GKSessionDataReceiver; anything else stops the program and says so")
    func wrongHandler() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let session = GKSession(sessionID: "game", displayName: "Puma", sessionMode: .peer)
            session?.setDataReceiveHandler(NSObject(), withContext: nil)
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(text.contains("NSObject does not conform to GKSessionDataReceiver"), "\(text)")
    }
}
