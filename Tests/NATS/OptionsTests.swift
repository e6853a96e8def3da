import NighCore
import NighTestKit
import Testing

@testable import NighNATS

@Suite struct OptionsTests {
    private func options(_ text: String) throws -> NATSOptions {
        try NATSOptions(TransportSpec(parsing: text))
    }

    @Test func `A spec names servers, credentials, authorities and a realm`() throws {
        let options = try options(
            "nats:server=tls://a.example+nats://[::1]:4333+b.example:4444,credentials=/f,ca=/c,realm=Home-2")
        #expect(
            options.servers.map(\.description) == [
                "tls://a.example:4222", "nats://[::1]:4333", "nats://b.example:4444",
            ])
        #expect(options.servers.map(\.host) == ["a.example", "::1", "b.example"])
        #expect(options.credentials == "/f" && options.authorities == "/c" && options.realm == "Home-2")
        #expect(try self.options("nats:server=a").realm == "nigh")
    }

    @Test(arguments: [
        ("nats", "options without a server"), ("nats:server=", "server \"\""),
        ("nats:server=http://a", "server \"http://a\""), ("nats:server=a:0", "port in server \"a:0\""),
        ("nats:server=a:x", "port in server \"a:x\""), ("nats:server=::1", "server \"::1\""),
        ("nats:server=nats://me:secret@a", "server address with credentials in it"),
        ("nats:server=a,realm=x.y", "realm \"x.y\""), ("nats:server=a,realm=", "realm \"\""),
        ("nats:server=a,credentials=", "credentials \"\""),
        ("nats:server=a,ca=/c", "ca without a tls:// server"),
    ])
    func `What is wrong with a spec is named`(_ text: String, _ what: String) throws {
        #expect {
            _ = try options(text)
        } throws: { error in
            guard let error = error as? NighError else { return false }
            return error.cause == .invalid(what) && error.transport == "nats" && error.advice != nil
        }
    }

    @Test func `Servers that a cluster tells of are tried in any order, and the last one used comes last`()
        throws
    {
        let first = try ServerAddress(parsing: "tls://a.example")
        var list = ServerList([first])
        list.note(["nats://10.0.0.1:4222", "b.example:4222", "a.example:4222"], from: first)
        var generator = SeededGenerator(seed: 1)
        var orders: Set<[String]> = []
        for _ in 0..<20 {
            let servers = list.order(using: &generator)
            #expect(servers.last == first && servers.allSatisfy(\.isEncrypted))
            orders.insert(servers.map(\.host))
        }
        #expect(
            orders == [
                ["10.0.0.1", "b.example", "a.example"], ["b.example", "10.0.0.1", "a.example"],
            ])
        // A cluster's certificate has names, and a server that is told by number has one of them.
        #expect(
            list.order(using: &generator).first { $0.host == "10.0.0.1" }?.expectedName == "a.example")
    }

    @Test func `A greeting is read, whatever else is in it`() {
        let text = """
            INFO {"server_id":"N","version":"2.9.10","a":{"version":"1","tls_required":true},"connect_urls":\
            ["a:1","b:2"],"s":"a \\"quoted\\", tls_required: true","ldm":true,"client_id":4}
            """
        let greeting = ServerGreeting(Array(text.utf8))
        #expect(greeting?.version == "2.9.10")
        #expect(greeting?.requiresTLS == false && greeting?.offersTLS == false)
        #expect(greeting?.isLeaving == true)
        let cut = "INFO {\"client_id\":4,\"version\":\"2"
        for text in ["", "HTTP/1.1 400", "INFO ", "INFO {", cut, cut + "\\", "INFO {\"version\":\"2.9.10\"}"]
        {
            #expect(ServerGreeting(Array(text.utf8)) == nil)
        }
    }

    @Test func `Versions that get no fixes any more are known`() {
        for old in ["2.9.10", "2.1.9", "1.4.1"] { #expect(NATSConnection.hasKnownHoles(old)) }
        for new in ["2.10.0", "2.15.1", "3.0.0", "", "unknown"] {
            #expect(!NATSConnection.hasKnownHoles(new))
        }
    }
}
