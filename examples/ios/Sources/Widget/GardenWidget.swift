import PosternClient
import SwiftUI
import WidgetKit

/// Shows who is signed in. It reads the session that the app keeps, by the access group that both have.
@main
struct GardenWidget: Widget {
    var body: some WidgetConfiguration {
        StaticConfiguration(kind: "garden", provider: Provider()) { entry in Text(entry.text) }
            .configurationDisplayName("Garden")
    }
}

struct Entry: TimelineEntry {
    let date: Date
    let text: String
}

struct Provider: TimelineProvider {
    func placeholder(in context: Context) -> Entry { Entry(date: .now, text: "…") }

    func getSnapshot(in context: Context, completion: @escaping (Entry) -> Void) {
        // Called once; SDKs differ in whether it is declared @Sendable.
        nonisolated(unsafe) let completion = completion
        Task { completion(await Self.entry()) }
    }

    func getTimeline(in context: Context, completion: @escaping (Timeline<Entry>) -> Void) {
        nonisolated(unsafe) let completion = completion
        Task { completion(Timeline(entries: [await Self.entry()], policy: .after(.now.addingTimeInterval(3600)))) }
    }

    /// Asks the server, so that a session that has ended elsewhere is not shown for long.
    private static func entry() async -> Entry {
        do {
            let details = try await PosternClient(Settings.configuration()).account.load()
            return Entry(date: .now, text: "Hello \(details.firstName ?? "you")")
        } catch PosternError.signedOut {
            return Entry(date: .now, text: "Open the app to sign in.")
        } catch {
            return Entry(date: .now, text: "No connection.")
        }
    }
}
