import Arguments
import Glibc
import NighTestKit
import Testing

@testable import nigh

@Suite(.callsPrograms) struct SettingsFileTests {
    private func parse(_ text: String) throws -> [OptionDefault] {
        try SettingsFile.parse(text, path: "settings", home: "/home/puma")
    }

    @Test func `Lines are options for all commands, or for the one above them`() throws {
        let text = """
            # for all
            transport = tcp

            [receive]   # for one
              into = ~/Downloads
            notify=yes
            """
        let expected = [
            (nil, "transport", "tcp", 2), ("receive", "into", "/home/puma/Downloads", 5),
            ("receive", "notify", "yes", 6),
        ]
        #expect(
            try parse(text)
                == expected.map {
                    OptionDefault(command: $0.0, option: $0.1, value: $0.2, place: "settings, line \($0.3)")
                })
    }

    @Test(arguments: ["transport", "= tcp", "into =", "[receive"])
    func `A line that is no setting is named with its number`(_ line: String) {
        let error = #expect(throws: UsageError.self) { try parse("\n\(line)") }
        #expect(error?.description.hasPrefix("settings, line 2: ") == true)
    }

    @Test func `A command takes its defaults from the file, unless others can write it`() throws {
        let user = NighUser()
        try #require(mkdir(user.dataFolder, 0o700) == 0)
        func status(_ settings: String, mode: mode_t = 0o600) throws -> NighCall {
            _ = user.folder.file("nigh/settings", settings, mode: mode)
            return try user.run("status", status: nil)
        }
        #expect(try status("[status]\nduration = 0\njson = yes\n").json["nigh"].string == "status")
        let wrong = try status("tempo = 5\n")
        #expect(wrong.status == 2 && wrong.errors.count == 1, "\(wrong)")
        #expect(
            wrong.error.contains("\(user.dataFolder)/settings, line 1: no command has an option \"tempo\""))
        let refused = try status("tempo = 5\n", mode: 0o666)
        #expect(refused.status == 2 && refused.error.contains("others may write it"), "\(refused)")
    }
}
