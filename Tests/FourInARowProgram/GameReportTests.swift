import NighCore
import Testing

@testable import FourInARow
@testable import fourinarow

struct GameReportTests {
    @Test(
        "The beginning names the two players, whoever of the people at the table reports it",
        arguments: [Scene.puma, Scene.lynx, Scene.owl])
    func players(_ reporter: PeerID) throws {
        let view = try Scene.playing(watched: true).view(of: reporter)
        let lines = GameReport(optionalSchemes: []).lines(
            for: .table(.began(number: 1, starter: .red)), in: view)
        #expect(lines == ["Puma plays red, Lynx yellow, over tcp; red begins"])
    }
}
