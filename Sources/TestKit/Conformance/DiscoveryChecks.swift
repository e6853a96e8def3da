import NighCore

extension TransportConformance {
    static let discoveryChecks = [
        ConformanceCheck(
            "found-changed-lost", "who browses is told of an advertisement that comes, changes and goes"
        ) { bench in
            let browser = try bench.station()
            try browser.browse()
            let server = try bench.station()
            let info = try DiscoveryInfo(["table": "open"])
            let first = server.advertisement("First", info: info)
            try server.advertise(first)
            try bench.wait("routeFound") { browser.sighting(of: server) != nil }
            try bench.expect(
                browser.sighting(of: server)?.advertisement == first,
                "found was \(String(describing: browser.sighting(of: server)?.advertisement))")
            let second = server.advertisement("Second", info: try DiscoveryInfo(["table": "full"]))
            try server.call { $0.updateAdvertisement(second) }
            try bench.wait("routeChanged, with the new name and info") {
                browser.sighting(of: server)?.advertisement == second
            }
            try server.call { $0.stopAdvertising() }
            try bench.wait("routeLost") { browser.sighting(of: server) == nil }
            try server.advertise(first)
            try bench.wait("routeFound again") { browser.sighting(of: server)?.advertisement == first }
            try server.shutdown()
            try bench.wait("routeLost after a shutdown") { browser.sighting(of: server) == nil }
        },
        ConformanceCheck(
            "browse-later",
            "what is advertised already is found, and can be dialled at the address it is seen at"
        ) { bench in
            let servers = try (1...min(2, bench.rig.endsAtOnce - 1)).map { _ in try bench.listener() }
            let browser = try bench.station()
            try browser.browse()
            for server in servers {
                try bench.wait("routeFound for each of \(servers.count)") {
                    browser.sighting(of: server) != nil
                }
                guard let address = browser.sighting(of: server)?.address else { continue }
                let dial = try browser.dial(address)
                try bench.wait("a dial to the sighting's address opens a pipe") {
                    browser.dialledPipe(dial) != nil && server.acceptedPipes.count == 1
                }
            }
        },
        ConformanceCheck(
            "browse-again", "after stopBrowsing nothing is told; the next browse finds what is there anew"
        ) { bench in
            let server = try bench.listener()
            let browser = try bench.station()
            try browser.browse()
            try bench.wait("routeFound") { browser.sighting(of: server) != nil }
            try browser.stopBrowsing()
            try browser.stopBrowsing()
            let count = browser.routes.count
            let renamed = server.advertisement("Renamed")
            try server.call { $0.updateAdvertisement(renamed) }
            try bench.settle()
            try bench.expect(browser.routes.count == count, "routes were told after stopBrowsing")
            try browser.browse()
            try bench.wait("routeFound anew, with what is advertised now") {
                browser.sighting(of: server)?.advertisement == renamed
            }
            try browser.stopBrowsing()
            try server.call { $0.stopAdvertising() }
            try bench.settle()
        },
        ConformanceCheck("both-see-each-other", "two that advertise and browse find each other") { bench in
            let first = try bench.listener()
            let second = try bench.listener()
            try first.browse()
            try second.browse()
            try bench.wait("each finds the other") {
                first.sighting(of: second) != nil && second.sighting(of: first) != nil
            }
        },
        ConformanceCheck(
            "advertise-replaced", "advertise again replaces what is seen; pipes stay and dials still arrive"
        ) { bench in
            let server = try bench.listener()
            let browser = try bench.station()
            try browser.browse()
            let (dialled, accepted) = try bench.connect(browser, server)
            let again = server.advertisement("Again", info: try DiscoveryInfo(["x": "y"]))
            try server.advertise(again)
            try bench.wait("the new advertisement is seen") {
                browser.sighting(of: server)?.advertisement == again
            }
            try bench.settle()
            let seen = browser.sightings.filter { $0.advertisement.peer == server.peer }
            try bench.expect(Set(seen.map(\.advertisement)) == [again], "the old advertisement is still seen")
            try dialled.send(tag: 1, upTo: 1000, pieceLimit: 100)
            try bench.wait("the pipe that was open goes on") { accepted.received == 1000 }
            for end in [dialled, accepted] { try end.close(.now) }
            _ = try bench.connect(browser, server)
        },
        ConformanceCheck(
            "update-in-place",
            "updateAdvertisement leaves listener and pipes alone, and does nothing when not advertising"
        ) { bench in
            let server = try bench.listener()
            let client = try bench.station()
            let (dialled, accepted) = try bench.connect(client, server)
            let before = (addresses: server.listening, changes: server.listeningChanges)
            for number in 0..<5 {
                let next = server.advertisement("Number \(number)")
                try server.call { $0.updateAdvertisement(next) }
            }
            try bench.settle()
            try bench.expect(server.listening == before.addresses, "it listens elsewhere now")
            try bench.expect(server.listeningChanges == before.changes, "listeningChanged without a change")
            try dialled.send(tag: 1, upTo: 1000, pieceLimit: 100)
            try bench.wait("the pipe goes on") { accepted.received == 1000 }
            let advertisement = client.advertisement()
            try client.call { $0.updateAdvertisement(advertisement) }
            try client.call { $0.stopAdvertising() }
            try bench.settle()
            try bench.expect(client.listening.isEmpty, "an update began to advertise")
        },
        ConformanceCheck(
            "stop-advertising", "stopAdvertising ends listening, says so, and leaves open pipes alone"
        ) { bench in
            let server = try bench.listener()
            let client = try bench.station()
            let address = server.listening[0]
            let (dialled, accepted) = try bench.connect(client, server)
            try server.call { $0.stopAdvertising() }
            try bench.wait("listeningChanged without an address") { server.listening.isEmpty }
            let count = server.acceptedPipes.count
            let dial = try client.dial(address, timeout: .seconds(1))
            try bench.wait("a dial fails, or what it opened ends") {
                client.failure(dial) != nil || client.dialledPipe(dial)?.isOver == true
            }
            try bench.expect(server.acceptedPipes.count == count, "a pipe came in after stopAdvertising")
            try dialled.send(tag: 1, upTo: 1000, pieceLimit: 100)
            try accepted.send(tag: 2, upTo: 1000, pieceLimit: 100)
            try bench.wait("the pipe goes on") { accepted.received == 1000 && dialled.received == 1000 }
            for end in [dialled, accepted] { try end.close(.now) }
            try server.advertise()
            try bench.wait("it listens again") { !server.listening.isEmpty }
            _ = try bench.connect(client, server)
        },
    ]
}
