import NighUV
import Testing

@testable import NighBluetooth

/// Tests `SystemBus` with a real D-Bus daemon.
struct SystemBusTests {
    private static let name = "org.nigh.Tests"

    private func method(_ member: String, path: String = "/object") -> SystemBus.Method {
        SystemBus.Method(destination: Self.name, path: path, interface: "org.nigh.Tests1", member: member)
    }

    /// Opens a connection and requests a name for it.
    private func named(in room: BusRoom) throws -> SystemBus {
        let bus = try room.connect()
        room.callMethod("name", bus, BusRoom.method("RequestName"), [.text(Self.name), .number32(0)])
        try #require(room.wait(for: "name: [\"1\"]"))
        return bus
    }

    // MARK: Calls

    @Test func `A method call returns its result or error`() throws {
        let room = try BusRoom()
        let bus = try room.connect()
        room.callMethod("owner", bus, BusRoom.method("GetNameOwner"), [.text("org.freedesktop.DBus")])
        #expect(room.wait(for: "owner: [\"org.freedesktop.DBus\"]"))
        room.callMethod("nobody", bus, BusRoom.method("GetNameOwner"), [.text("org.nigh.Nobody")])
        #expect(room.wait(for: "nobody failed: org.freedesktop.DBus.Error.NameHasNoOwner"))
        room.callMethod("away", bus, method("Anything"))
        #expect(room.wait(for: "away failed: org.freedesktop.DBus.Error.NameHasNoOwner"))
        room.call { bus.close() }
    }

    @Test func `An invalid call fails in a later turn`() throws {
        let room = try BusRoom()
        let bus = try room.connect()
        room.call {
            var method = BusRoom.method("Anything")
            method.path = "no path"
            bus.call(method) { [weak room] result in
                if case .failure = result { room?.note("failed") }
            }
            room.note("called")
        }
        #expect(room.wait(for: "failed"))
        #expect(room.notes == ["called", "failed"])
        room.call { bus.close() }
    }

    @Test func `A call times out without an answer`() throws {
        let room = try BusRoom()
        let (server, client) = (try named(in: room), try room.connect())
        let kept = Kept()
        room.call { kept.objects.append(server.export(at: "/object") { kept.requests.append($0) }) }
        let method = method("Wait")
        room.call {
            client.call(method, seconds: 1) { [weak room] result in
                if case .failure(let fault) = result { room?.note("gave up: \(fault.name)") }
            }
        }
        #expect(
            room.wait {
                room.notes.contains { $0.hasPrefix("gave up: ") }
            })
        room.call { for bus in [server, client] { bus.close() } }
    }

    @Test func `Values of every kind arrive unchanged`() throws {
        let room = try BusRoom()
        let (server, client) = (try named(in: room), try room.connect())
        let kept = Kept()
        room.call {
            kept.objects.append(
                server.export(at: "/object") { [weak room] request in
                    room?.note("\(request.interface) \(request.member) \(request.values.map(BusRoom.text))")
                    request.answer([.text("thanks"), .number16(65_535)])
                })
        }
        let options = BusArgument.options([("a", .boolean(false)), ("b", .path("/b")), ("c", .options([]))])
        room.callMethod(
            "answer", client, method("Take"),
            [
                .text("<é>"), .path("/x/y"), .boolean(true), .number16(7), .number32(.max),
                .variant([.text("v")]),
                options,
            ])
        #expect(room.wait(for: "answer: [\"thanks\", \"65535\"]"))
        #expect(
            room.notes.contains(
                "org.nigh.Tests1 Take [\"<é>\", \"/x/y\", \"true\", \"7\", \"4294967295\", \"v\", "
                    + "\"{a=false b=/b c={}}\"]"))
        room.call { for bus in [server, client] { bus.close() } }
    }

    // MARK: Signals

    @Test func `A signal is delivered to its subscribers`() throws {
        let room = try BusRoom()
        let bus = try room.connect()
        room.call {
            bus.subscribe(to: "type='signal',member='NameOwnerChanged',arg0='\(Self.name)'") {
                [weak room] signal in
                let owners = signal.values.dropFirst().map { $0.text == "" ? "nobody" : "somebody" }
                room?.note("\(signal.path) \(signal.interface) \(signal.member) \(owners)")
            }
        }
        room.callMethod("sync", bus, BusRoom.method("GetId"))
        try #require(room.wait { room.notes.contains { $0.hasPrefix("sync") } })
        let other = try named(in: room)
        let words = "/org/freedesktop/DBus org.freedesktop.DBus NameOwnerChanged"
        #expect(room.wait(for: "\(words) [\"nobody\", \"somebody\"]"))
        room.call { other.close() }
        #expect(room.wait(for: "\(words) [\"somebody\", \"nobody\"]"))
        room.call { bus.close() }
    }

    // MARK: Objects

    @Test func `An object answers now later or not at all`() throws {
        let room = try BusRoom()
        let (server, client) = (try named(in: room), try room.connect())
        let kept = Kept()
        room.call {
            kept.objects.append(
                server.export(at: "/object") { request in
                    switch request.member {
                    case "Now":
                        request.answer()
                        // Only the first answer counts.
                        request.refuse("org.nigh.Late", "too late")
                        request.answer()
                    case "Later": kept.requests.append(request)
                    case "No": request.refuse("org.nigh.No", "not today")
                    default: break
                    }
                })
        }
        for member in ["Later", "Now", "No", "Never"] { room.callMethod(member, client, method(member)) }
        #expect(room.wait(for: "Now: []"))
        #expect(room.wait(for: "No failed: org.nigh.No"))
        #expect(room.wait(for: "Never failed: org.freedesktop.DBus.Error.UnknownMethod"))
        #expect(!room.notes.contains { $0.hasPrefix("Later") })
        room.call {
            kept.requests.first?.answer([.boolean(true)])
            kept.requests = []
        }
        #expect(room.wait(for: "Later: [\"true\"]"))
        room.callMethod("elsewhere", client, method("Now", path: "/elsewhere"))
        #expect(room.wait(for: "elsewhere failed: org.freedesktop.DBus.Error.UnknownObject"))
        // A released object no longer exists.
        room.call { kept.objects = [] }
        room.callMethod("gone", client, method("Now"))
        #expect(room.wait(for: "gone failed: org.freedesktop.DBus.Error.UnknownObject"))
        room.call { for bus in [server, client] { bus.close() } }
    }

    @Test func `Requests and objects may outlive their bus`() throws {
        let room = try BusRoom()
        let (server, client) = (try named(in: room), try room.connect())
        let kept = Kept()
        room.call {
            kept.objects.append(
                server.export(at: "/object") { [weak room] request in
                    kept.requests.append(request)
                    room?.note("called")
                })
        }
        room.callMethod("answer", client, method("Wait"))
        try #require(room.wait(for: "called"))
        room.call { server.close() }
        #expect(room.wait(for: "answer failed: org.freedesktop.DBus.Error.NoReply"))
        room.call {
            kept.requests.first?.answer()
            kept.requests = []
            kept.objects = []
            #expect(server.export(at: "/object") { _ in } == nil)
            client.close()
        }
    }

    // MARK: Ends

    @Test func `A lost bus is reported once`() throws {
        let room = try BusRoom()
        let bus = try room.connect()
        room.callMethod("sync", bus, BusRoom.method("GetId"))
        try #require(room.wait { room.notes.contains { $0.hasPrefix("sync") } })
        room.daemon.stop()
        #expect(room.wait(for: "lost"))
        room.callMethod("after", bus, BusRoom.method("GetId"))
        room.call { bus.close() }
        room.call {}
        #expect(room.notes.filter { $0 == "lost" }.count == 1)
        #expect(!room.notes.contains { $0.hasPrefix("after") })
    }

    @Test func `Nothing is reported after the close`() throws {
        let room = try BusRoom()
        let bus = try room.connect()
        room.call {
            bus.subscribe(to: "type='signal',member='NameOwnerChanged'") { [weak room] _ in
                room?.note("signal")
            }
            bus.call(BusRoom.method("GetId")) { [weak room] _ in room?.note("answer") }
            bus.close()
            bus.close()
        }
        // By now, anything that the daemon had to say has arrived.
        let other = try named(in: room)
        room.daemon.stop()
        #expect(room.wait(for: "lost"))
        #expect(room.notes.filter { $0 != "lost" && !$0.hasPrefix("name") } == [])
        room.call { other.close() }
    }

    @Test func `Connecting to a missing bus fails`() throws {
        let room = try BusRoom()
        room.daemon.stop()
        #expect(throws: BusFault.self) { try room.connect() }
        #expect(room.notes.isEmpty)
    }

    /// Values that tests keep beyond a callback. `@unchecked Sendable`: confined to the loop.
    private final class Kept: @unchecked Sendable {
        var requests: [BusRequest] = []
        var objects: [BusObject?] = []
    }
}
