import NighCore

extension TransportConformance {
    static let discoveryChecks = [
        ConformanceCheck(
            "found-changed-lost",
            "a browsing transport reports an advertisement that appears, grows to its greatest size and disappears"
        ) { testbed in
            let browser = try testbed.startTransport()
            try browser.browse()
            let server = try testbed.startTransport()
            let info = try DiscoveryInfo(["table": "open"])
            let first = server.advertisement("First", info: info, identity: browser.peer)
            try server.advertise(first)
            try testbed.wait("routeFound") { browser.sighting(of: server) != nil }
            try testbed.expect(
                browser.sighting(of: server)?.advertisement == first,
                "found was \(String(describing: browser.sighting(of: server)?.advertisement))")
            let most = try DiscoveryInfo([
                "table": "full", String(repeating: "k", count: 200): String(repeating: "v", count: 54),
                "a": String(repeating: "ü", count: 65),
            ])
            try testbed.expect(most.byteCount == DiscoveryInfo.maximumByteCount, "a smaller size is checked")
            let second = server.advertisement("Second", info: most, isFull: true, identity: browser.peer)
            try server.call { $0.updateAdvertisement(second) }
            try testbed.wait("routeChanged, with the new name and info, and that the peer is full") {
                browser.sighting(of: server)?.advertisement == second
            }
            try server.call { $0.stopAdvertising() }
            try testbed.wait("routeLost") { browser.sighting(of: server) == nil }
            try server.advertise(first)
            try testbed.wait("routeFound again") { browser.sighting(of: server)?.advertisement == first }
            try server.shutdown()
            try testbed.wait("routeLost after a shutdown") { browser.sighting(of: server) == nil }
        },
        ConformanceCheck(
            "browse-later",
            "an advertisement that exists already is found, and the address of its sighting can be dialled"
        ) { testbed in
            let servers = try (1...min(2, testbed.rig.endsAtOnce - 1)).map { _ in try testbed.startListener()
            }
            let browser = try testbed.startTransport()
            try browser.browse()
            for server in servers {
                try testbed.wait("routeFound for each of \(servers.count)") {
                    browser.sighting(of: server) != nil
                }
                guard let address = browser.sighting(of: server)?.address else { continue }
                let dial = try browser.dial(address)
                try testbed.wait("a dial to the sighting's address opens a pipe") {
                    browser.dialledPipe(dial) != nil && server.acceptedPipes.count == 1
                }
            }
        },
        ConformanceCheck(
            "browse-again", "after stopBrowsing nothing is reported; the next browse finds everything again"
        ) { testbed in
            let server = try testbed.startListener()
            let browser = try testbed.startTransport()
            try browser.browse()
            try testbed.wait("routeFound") { browser.sighting(of: server) != nil }
            try browser.stopBrowsing()
            try browser.stopBrowsing()
            let count = browser.routes.count
            let renamed = server.advertisement("Renamed")
            try server.call { $0.updateAdvertisement(renamed) }
            try testbed.waitQuietTime()
            try testbed.expect(browser.routes.count == count, "routes were reported after stopBrowsing")
            try browser.browse()
            try testbed.wait("routeFound again, with what is advertised now") {
                browser.sighting(of: server)?.advertisement == renamed
            }
            try browser.stopBrowsing()
            try server.call { $0.stopAdvertising() }
            try testbed.waitQuietTime()
        },
        ConformanceCheck("both-see-each-other", "two transports that advertise and browse find each other") {
            testbed in
            let first = try testbed.startListener()
            let second = try testbed.startListener()
            try first.browse()
            try second.browse()
            try testbed.wait("each finds the other") {
                first.sighting(of: second) != nil && second.sighting(of: first) != nil
            }
        },
        ConformanceCheck(
            "advertise-replaced",
            "a second advertise replaces the first; pipes stay open and dials still arrive"
        ) { testbed in
            let server = try testbed.startListener()
            let browser = try testbed.startTransport()
            try browser.browse()
            let (dialled, accepted) = try testbed.connect(browser, server)
            let again = server.advertisement("Again", info: try DiscoveryInfo(["x": "y"]))
            try server.advertise(again)
            try testbed.wait("the new advertisement is seen") {
                browser.sighting(of: server)?.advertisement == again
            }
            try testbed.waitQuietTime()
            let seen = browser.sightings.filter { $0.advertisement.peer == server.peer }
            try testbed.expect(
                Set(seen.map(\.advertisement)) == [again], "the old advertisement is still seen")
            try dialled.send(tag: 1, upTo: 1000, pieceLimit: 100)
            try testbed.wait("the open pipe continues") { accepted.received == 1000 }
            for end in [dialled, accepted] { try end.close(.now) }
            _ = try testbed.connect(browser, server)
        },
        ConformanceCheck(
            "update-in-place",
            "updateAdvertisement leaves listener and pipes alone, and does nothing when not advertising"
        ) { testbed in
            let server = try testbed.startListener()
            let client = try testbed.startTransport()
            let (dialled, accepted) = try testbed.connect(client, server)
            let before = (addresses: server.listening, changes: server.listeningChanges)
            for number in 0..<5 {
                let next = server.advertisement("Number \(number)")
                try server.call { $0.updateAdvertisement(next) }
            }
            try testbed.waitQuietTime()
            try testbed.expect(server.listening == before.addresses, "it listens at another address now")
            try testbed.expect(server.listeningChanges == before.changes, "listeningChanged without a change")
            try dialled.send(tag: 1, upTo: 1000, pieceLimit: 100)
            try testbed.wait("the pipe continues") { accepted.received == 1000 }
            let advertisement = client.advertisement()
            try client.call { $0.updateAdvertisement(advertisement) }
            try client.call { $0.stopAdvertising() }
            try testbed.waitQuietTime()
            try testbed.expect(client.listening.isEmpty, "an update began to advertise")
        },
        ConformanceCheck(
            "stop-advertising", "stopAdvertising ends listening, reports it, and leaves open pipes alone"
        ) { testbed in
            let server = try testbed.startListener()
            let client = try testbed.startTransport()
            let address = try Testbed.address(in: server.listening)
            let (dialled, accepted) = try testbed.connect(client, server)
            try server.call { $0.stopAdvertising() }
            try testbed.wait("listeningChanged without an address") { server.listening.isEmpty }
            let count = server.acceptedPipes.count
            let dial = try client.dial(address, timeout: .seconds(1))
            try testbed.wait("a dial fails, or the pipe that it opened ends") {
                client.failure(dial) != nil || client.dialledPipe(dial)?.isOver == true
            }
            try testbed.expect(server.acceptedPipes.count == count, "a pipe came in after stopAdvertising")
            try dialled.send(tag: 1, upTo: 1000, pieceLimit: 100)
            try accepted.send(tag: 2, upTo: 1000, pieceLimit: 100)
            try testbed.wait("the pipe continues") { accepted.received == 1000 && dialled.received == 1000 }
            for end in [dialled, accepted] { try end.close(.now) }
            try server.advertise()
            try testbed.wait("it listens again") { !server.listening.isEmpty }
            _ = try testbed.connect(client, server)
        },
    ]
}
