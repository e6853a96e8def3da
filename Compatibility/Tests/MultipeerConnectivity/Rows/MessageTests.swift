import MultipeerConnectivity
import Testing

/// Rows 1 to 5, 8, 28, 29 and 31 of the table in the guide: messages and their order.
@Suite("Messages of a session", .timeLimit(.minutes(10))) struct MessageTests {
    @Test("arrive in full at several peers, after send has returned")
    func several() async throws {
        let service = Device.service()
        let host = Device("Puma", service: service)
        let guests = ["Lynx", "Hare", "Otter"].prefix(memberLimit - 1).map { Device($0, service: service) }
        for guest in guests { await host.connect(guest) }
        let message = Data(Bytes.pattern(1_048_576))
        try host.session.send(message, toPeers: guests.map(\.id), with: .reliable)
        for guest in guests {
            await guest.wait(for: .message(host.id, message))
            #expect(guest.messages(from: host.id).count == 1)
        }
        for device in guests + [host] { device.end() }
    }

    @Test("arrive in the order in which they were sent, whatever their size")
    func order() async throws {
        let service = Device.service()
        let (puma, lynx) = (Device("Puma", service: service), Device("Lynx", service: service))
        await puma.connect(lynx)
        let sent = (0..<10_000).map { index in
            Data("\(index)".utf8) + Data(count: index.isMultiple(of: 1_000) ? 100_000 : 0)
        }
        for message in sent { try puma.session.send(message, toPeers: [lynx.id], with: .reliable) }
        await lynx.wait(for: .message(puma.id, sent[9_999]))
        #expect(lynx.messages(from: puma.id) == sent)
        puma.end()
        lynx.end()
    }

    @Test("that are unreliable arrive on a link that has room, also long ones")
    func unreliable() async throws {
        let service = Device.service()
        let (puma, lynx) = (Device("Puma", service: service), Device("Lynx", service: service))
        await puma.connect(lynx)
        try puma.session.send(Data(count: 50_000), toPeers: [lynx.id], with: .unreliable)
        await lynx.wait(for: .message(puma.id, Data(count: 50_000)))
        // One may be dropped.
        while lynx.messages(from: puma.id).count == 1 {
            try puma.session.send(Data("position".utf8), toPeers: [lynx.id], with: .unreliable)
            try await Task.sleep(for: .milliseconds(10))
        }
        #expect(lynx.messages(from: puma.id).last == Data("position".utf8))
        puma.end()
        lynx.end()
    }

    @Test(
        "for a peer that is not connected are refused, for all peers of the call, and so is a call without peers"
    )
    func refused() async throws {
        let service = Device.service()
        let (puma, lynx) = (Device("Puma", service: service), Device("Lynx", service: service))
        let stranger = MCPeerID(displayName: "Nobody")
        await puma.connect(lynx)
        do {
            try puma.session.send(Data("x".utf8), toPeers: [lynx.id, stranger], with: .reliable)
            Issue.record("it was sent")
        } catch MCError.notConnected {
        }
        do {
            try puma.session.send(Data("x".utf8), toPeers: [], with: .reliable)
            Issue.record("it was sent")
        } catch let error as MCError {
            #expect(error.code == .invalidParameter)
        }
        try puma.session.send(Data("y".utf8), toPeers: [lynx.id], with: .reliable)
        await lynx.wait(for: .message(puma.id, Data("y".utf8)))
        #expect(lynx.messages(from: puma.id) == [Data("y".utf8)])
        puma.end()
        lynx.end()
    }

    @Test("that were sent before a disconnect arrive before it")
    func last() async throws {
        let service = Device.service()
        let (puma, lynx) = (Device("Puma", service: service), Device("Lynx", service: service))
        await puma.connect(lynx)
        for index in 0..<100 {
            try puma.session.send(Data("\(index)".utf8), toPeers: [lynx.id], with: .reliable)
        }
        puma.session.disconnect()
        await lynx.wait(for: .state(puma.id, .notConnected))
        #expect(lynx.messages(from: puma.id).count == 100)
        #expect(puma.session.connectedPeers.isEmpty)
        puma.end()
        lynx.end()
    }

    @Test(
        "are passed on one after the other, on a queue that is not the sender's, while their peer is connected"
    )
    func queue() async throws {
        let service = Device.service()
        let (puma, lynx) = (Device("Puma", service: service), Device("Lynx", service: service))
        let isInside = NSLock()
        lynx.onMessage = { [unowned lynx] data, peer in
            #expect(isInside.try())
            #expect(lynx.session.connectedPeers == [peer] && !Thread.isMainThread)
            lynx.note(.message(peer, data))
            isInside.unlock()
        }
        lynx.onState = { [unowned lynx] peer, state in
            #expect(isInside.try())
            if state == .connected { #expect(lynx.session.connectedPeers.contains(peer)) }
            if state == .notConnected { #expect(!lynx.session.connectedPeers.contains(peer)) }
            isInside.unlock()
        }
        await puma.connect(lynx)
        for index in 0..<500 {
            try puma.session.send(Data("\(index)".utf8), toPeers: [lynx.id], with: .reliable)
        }
        await lynx.wait { $0.filter { if case .message = $0 { true } else { false } }.count == 500 }
        lynx.end()
        puma.end()
        await lynx.wait(for: .state(puma.id, .notConnected))
    }

    @Test(
        "cannot be sent any more once too much of them waits for a slow program, and none of the others is lost"
    )
    func backPressure() async throws {
        let service = Device.service()
        let (puma, lynx) = (Device("Puma", service: service), Device("Lynx", service: service))
        let gate = DispatchSemaphore(value: 0)
        lynx.onMessage = { [unowned lynx] data, peer in
            gate.wait()
            gate.signal()
            lynx.note(.message(peer, data.prefix(8)))
        }
        await puma.connect(lynx)
        var sent = 0
        let filling = Data(count: 1 << 20)
        while sent < 1_000 {
            do {
                try puma.session.send(Data("\(sent)/".utf8) + filling, toPeers: [lynx.id], with: .reliable)
                sent += 1
            } catch MCError.unavailable {
                break
            }
        }
        #expect((60...80).contains(sent))
        gate.signal()
        let expected = (0..<sent).map { (Data("\($0)/".utf8) + filling).prefix(8) }
        await lynx.wait { [sent] in $0.filter { if case .message = $0 { true } else { false } }.count == sent
        }
        #expect(lynx.messages(from: puma.id) == expected)
        // There is room again.
        try puma.session.send(Data("end".utf8), toPeers: [lynx.id], with: .reliable)
        await lynx.wait(for: .message(puma.id, Data("end".utf8)))
        puma.end()
        lynx.end()
    }
}
