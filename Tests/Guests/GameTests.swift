import Browsers
import ChildPrograms
import NighTestKit
import Testing

@Suite("Four in a Row on a phone") struct GameTests {
    private let folder = TemporaryFolder()

    @Test(
        "is played to the end twice, over cuts and reloads, and the phone wins once and loses once",
        arguments: DrivenBrowser.Kind.allCases)
    func game(_ kind: DrivenBrowser.Kind) async throws {
        try await withBrowser {
            let host = try GuestHost("fourinarow", ["host", "--plain"], in: folder)
            let wire = try CuttableWire(to: host)
            let browser = try DrivenBrowser(kind, resolving: [host.name])
            try browser.use(.phone)
            try browser.open(wire.url(of: host))
            try browser.waitUntilShown("Play Four in a Row with Puma")
            try browser.run("document.getElementById('name').value = 'Anna'")
            try browser.tap("#choices button")
            // Without a question to the host.
            try host.program.line(with: "Anna", "sits down")

            // The host moves first, and piles up a column beside the phone's.
            try Self.play(host, wire, browser, hosts: [1, 1, 1, 2], phones: [7, 7, 7, 7])
            try browser.waitUntil("document.querySelector('.headline').innerText.includes('You win')")
            try host.program.line(with: "Anna wins")
            try browser.tap(".again")

            // Whoever asks for another game moves first.
            try Self.play(host, wire, browser, hosts: [4, 4, 4, 4], phones: [1, 2, 1, 2], phoneBegins: true)
            try host.program.line(with: "You win!")
            try browser.waitUntil("document.querySelector('.headline').innerText.includes('Puma wins')")

            // A page that is loaded again is the same guest, and sits down again.
            for _ in 0..<2 {
                try browser.reload()
                try browser.waitUntil("document.querySelector('.board') != null")
            }
            #expect(try browser.problems().filter { !$0.contains("WebSocket") } == [])
            try browser.tap("#leave")
            try host.program.line(with: "Anna", "left")
        }
    }

    /// Plays the moves of both in turn. The wire is cut while a move of each is on its way.
    private static func play(
        _ host: GuestHost, _ wire: CuttableWire, _ browser: DrivenBrowser, hosts: [Int], phones: [Int],
        phoneBegins: Bool = false
    ) throws {
        var discs = 0
        func shown() throws {
            discs += 1
            let count = "document.querySelectorAll('.board .disc:not(.pending)').length"
            try browser.waitUntil("\(count) >= \(discs)")
        }
        for (turn, (own, theirs)) in zip(hosts, phones).enumerated() {
            let moves: [() throws -> Void] = [
                {
                    host.program.type("\(own)")
                    if turn == 1 { try wire.cut() }
                    try shown()
                },
                {
                    try browser.tap(".board button:nth-child(\(theirs))")
                    if turn == 2 { try wire.cut() }
                    try shown()
                },
            ]
            for move in phoneBegins ? moves.reversed() : moves { try move() }
        }
    }
}
