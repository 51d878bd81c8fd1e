// What the examples use of WidgetKit, as declared there, without anything behind it.
import Foundation
import SwiftUI

public protocol TimelineEntry { var date: Date { get } }
public struct TimelineProviderContext: Sendable {}
public enum TimelineReloadPolicy: Sendable { case after(Date) }
public struct Timeline<EntryType: TimelineEntry> { public init(entries: [EntryType], policy: TimelineReloadPolicy) {} }
public protocol TimelineProvider {
    associatedtype Entry: TimelineEntry
    typealias Context = TimelineProviderContext
    func placeholder(in context: Context) -> Entry
    func getSnapshot(in context: Context, completion: @escaping (Entry) -> Void)
    func getTimeline(in context: Context, completion: @escaping (Timeline<Entry>) -> Void)
}

@MainActor @preconcurrency public protocol WidgetConfiguration {}
public struct SomeConfiguration: WidgetConfiguration {}
extension WidgetConfiguration { public func configurationDisplayName(_ name: String) -> some WidgetConfiguration { SomeConfiguration() } }
public struct StaticConfiguration<Content: View>: WidgetConfiguration {
    public init<Provider: TimelineProvider>(
        kind: String, provider: Provider, @ViewBuilder content: @escaping (Provider.Entry) -> Content) {}
}
@MainActor @preconcurrency public protocol Widget {
    associatedtype Body: WidgetConfiguration
    var body: Body { get }
    init()
}
extension Widget { public static func main() {} }
