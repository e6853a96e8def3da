import ChildPrograms
import NighCore
import Testing

@testable import FourInARow
@testable import fourinarow

struct SentencesTests {
    private static let wren = Scene.words("Wren")
    private static let off = NighError(
        .starting, .unavailable("the adapter is powered off"), advice: "run `bluetoothctl power on`")
    private static let refused = NighError(.connecting, .refused, advice: "is the program still running?")
    private static let allFailed = NighError(
        .connecting, .allFailed, peer: "Lynx", attempts: [refused, NighError(.connecting, .timedOut)])
    private static let request = SeatRequest(id: Scene.lynx, name: "Lynx", transport: "tcp")

    private static let tableNews: [TableNews] = [
        .ended(.line(.red)), .ended(.line(.yellow)), .ended(.draw), .ended(.resigned(.yellow)),
        .ended(.brokenOff(.red, .outOfTurn)), .ended(.left(.yellow)), .began(number: 3, starter: .red),
        .said(.yellow, Scene.words("hi")), .guestJoined(wren), .guestLeft(wren), .resumed(wren),
        .watched(by: 0), .watched(by: 1), .watched(by: 2), .joined(seated: true), .joined(seated: false),
    ]

    private static let lobbyNews: [LobbyNews] = [
        .hostLeft(name: "Puma", successor: "Lynx"), .hostLeft(name: "Puma", successor: nil),
        .couldNotJoin(name: "Lynx", NighError(.inviting, .declined("after lunch"))),
        .couldNotJoin(name: "Lynx", NighError(.inviting, .declined(""))),
        .couldNotJoin(name: "Lynx", NighError(.inviting, .peerLeft)),
        .couldNotJoin(
            name: "Lynx", NighError(.inviting, .timedOut, advice: "the host accepted but sent no table")),
        .couldNotJoin(name: "Lynx", allFailed), .notReachedYet(name: "Lynx", refused),
        .notReachedYet(name: "Lynx", allFailed), .tableClosed(name: "Puma", nil),
        .tableClosed(name: "Puma", NighError(.conversing, .peerLeft)),
        .tableClosed(name: "Puma", NighError(.conversing, .silent)),
        .hostMisbehaved(name: "Puma", .falseReport), .seatRequested(request),
        .seatRequestWithdrawn(request), .transport(scheme: "bluetooth", .down(off)),
        .transport(scheme: "bluetooth", .up), .otherFailure(off),
        .otherFailure(NighError(.starting, .refused, transport: "bluetooth")),
        .advertised(scheme: "tcp", name: "Owl"), .advertised(scheme: "tcp", name: "Owl #2"),
    ]

    private static let refusals: [(Breach, PeerID, moves: String?)] = [
        (.outOfTurn, Scene.puma, "d"), (.columnFull, Scene.puma, "d"), (.untimely, Scene.puma, "d"),
        (.untimely, Scene.owl, "d"), (.untimely, Scene.puma, nil), (.untimely, Scene.puma, Scene.line),
        (.untimely, Scene.owl, nil),
    ]

    @Test func `Host, guest and watcher read each sentence from their own side`() throws {
        let scene = try Scene.playing("d", watched: true)
        var lines: [String] = []
        for news in Self.tableNews {
            lines += [Scene.puma, Scene.lynx, Scene.owl].map { peer in
                let sentence = Sentences.sentence(for: .table(news), in: scene.view(of: peer))
                return "\(Scene.name(peer)): \(sentence ?? "-")"
            }
            lines.append("")
        }
        let lobby = LobbyView(name: "Owl", id: Scene.owl)
        lines += Self.lobbyNews.map { Sentences.sentence(for: $0, in: lobby) ?? "-" } + [""]
        lines += try Self.refusals.map { breach, peer, moves in
            let scene = try moves.map { try Scene.playing($0, watched: true) } ?? Scene()
            return "\(Scene.name(peer)): \(Sentences.sentence(for: breach, in: scene.view(of: peer)))"
        }
        lines += [""] + (try linkNews())
        let text = lines.map { "\($0)\n" }.joined()
        #expect(try Snapshots.difference(of: text, from: "FourInARowProgram/Snapshots/sentences.txt") == nil)
    }

    /// The sentences about links, which only matter if they concern the game.
    private func linkNews() throws -> [String] {
        let scene = try Scene.playing("d", watched: true)
        var people = [Scene.lynx, Scene.owl].map { scene.person($0) }
        people[0].transport = "bluetooth"
        let news = people.flatMap {
            [
                LobbyNews.linkLost($0, waiting: .milliseconds(9_500)), .linkRestored($0),
                .changedTransport($0, from: "tcp"),
            ]
        }
        let over = try Scene.playing(Scene.line).view(of: Scene.puma)
        let inGame = news.map { Sentences.sentence(for: $0, in: scene.view(of: Scene.puma)) ?? "-" }
        return inGame + [Sentences.sentence(for: news[2], in: over) ?? "-"]
    }

    @Test func `Everybody at a table reports the same two players of its first game`() throws {
        let scene = try Scene.playing(watched: true)
        for peer in [Scene.puma, Scene.lynx, Scene.owl] {
            let began = LobbyNews.table(.began(number: 1, starter: .red))
            let lines = GameReport(optionalSchemes: []).lines(for: began, in: scene.view(of: peer))
            #expect(lines == ["Puma plays red, Lynx yellow, over tcp; red begins"])
        }
    }

    @Test func `No sentence contains characters that control a terminal`() throws {
        let evil = "Pu\u{1B}[2Jma\u{202E}\u{7}"
        let lobby = LobbyView(name: "Owl", id: Scene.owl)
        for news in [
            LobbyNews.seatRequested(SeatRequest(id: Scene.lynx, name: evil, transport: "tcp")),
            .couldNotJoin(name: evil, NighError(.inviting, .declined(evil))),
            .notReachedYet(name: evil, NighError(.connecting, .unavailable(evil))),
            .tableClosed(name: evil, nil), .advertised(scheme: "tcp", name: evil),
            .otherFailure(NighError(.starting, .unavailable(evil), peer: evil, advice: evil)),
        ] {
            let sentence = try #require(Sentences.sentence(for: news, in: lobby))
            #expect(sentence.contains("Pu\u{FFFD}[2Jma\u{FFFD}\u{FFFD}"))
            #expect(sentence.isHarmless, "\(sentence)")
        }
    }
}
